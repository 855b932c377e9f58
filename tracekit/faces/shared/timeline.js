"use strict";
// The picture of typical steps: its events are drawn anew at each zoom, all variants together, and a click says what one
// is. Without this script the picture shows the whole steps.
for (const picture of document.querySelectorAll("svg.timeline")) {
  const still = picture.querySelector(".lanes"), scale = picture.querySelector(".scale");
  const number = (element, name) => Number(element.getAttribute(name));
  const gutter = number(still, "x"), wide = number(still, "width"), high = number(still, "height"), span = Number(picture.dataset.ns);
  const {colours, kinds, steps, lanes, shown: listed, all} = JSON.parse(picture.dataset.events);
  for (const lane of lanes) {
    let at = 0;
    lane.start = lane.start.map(distance => (at += distance));
  }
  const tall = Number(picture.getAttribute("viewBox").split(" ")[3]);
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  Object.assign(canvas.style, {
    left: `${100 * gutter / (gutter + wide)}%`, width: `${100 * wide / (gutter + wide)}%`, height: `${100 * high / tall}%`,
  });
  picture.parentElement.append(canvas);
  picture.classList.add("live");
  const whole = [...scale.childNodes];
  let from = 0, shown = wide, chosen = null;  // in units of the whole steps
  const element = (kind, attributes, text) => {
    const made = document.createElementNS(picture.namespaceURI, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const duration = ns => {
    const [unit, sign] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([unit]) => ns >= .9995 * unit) ?? [1, "ns"];
    return `${unit === 1 ? ns : (ns / unit).toPrecision(3)} ${sign}`;
  };
  const marks = () => {
    const ns = shown / wide * span, least = Math.max(ns / 8, 1), power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map(digit => digit * power).find(each => each >= least);
    const first = Math.ceil(from / wide * span / step), last = Math.floor((from + shown) / wide * span / step);
    const [unit, sign] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([ns]) => ns <= Math.max(last * step, 1));
    const digits = Math.max(0, Math.ceil(Math.log10(unit / step)));
    return Array.from({length: last - first + 1}, (_, k) => (first + k) * step).flatMap(ns => {
      const x = gutter + (ns / span * wide - from) * wide / shown;
      const line = element("path", {class: "mark", d: `M${x} 0V${high}`}, "");
      const text = element("text", {class: "quiet", x: x + 3, y: high + 12}, `+${(ns / unit).toFixed(digits)} ${sign}`);
      return x < gutter + wide - 60 ? [line, text] : [line];
    });
  };
  // The first event of a lane that ends after a moment: events of a lane do not overlap.
  const following = (lane, ns) => {
    let low = 0, beyond = lane.start.length;
    while (low < beyond) {
      const middle = (low + beyond) >> 1;
      if (lane.start[middle] + lane.dur[middle] > ns) beyond = middle; else low = middle + 1;
    }
    return low;
  };
  // Events that are wider than a pixel are drawn with their names; of narrower ones, how much of each pixel they cover.
  const drawLane = (lane, pixels, zoom) => {
    const begin = from / wide * span, end = (from + shown) / wide * span, perNs = pixels / (end - begin);
    const top = lane.y * zoom, tall = lane.high * zoom, covered = new Float64Array(pixels + 1), colour = [];
    for (let k = following(lane, begin); k < lane.start.length && lane.start[k] < end; k++) {
      const x = Math.max((lane.start[k] - begin) * perNs, 0), right = Math.min((lane.start[k] + lane.dur[k] - begin) * perNs, pixels);
      const [label, , category] = kinds[lane.kind[k]], [fill, ink] = colours[category];
      if (right - x < 1) {
        covered[Math.floor(x)] += right - x;
        colour[Math.floor(x)] = fill;
        continue;
      }
      pen.fillStyle = fill;
      pen.fillRect(x, top, right - x - (right - x > 3 ? .6 : 0), tall);
      const letters = Math.floor((right - x - 6 * zoom) / (6.6 * zoom));
      if (letters < 3) continue;
      pen.fillStyle = ink;
      pen.fillText(label.length <= letters ? label : label.slice(0, letters - 1) + "…", x + 3 * zoom, top + tall / 2);
    }
    colour.forEach((fill, x) => {
      const part = Math.max(Math.min(covered[x], 1) * tall, 1);
      pen.fillStyle = fill;
      pen.fillRect(x, top + tall - part, 1, part);
    });
    if (chosen?.lane === lane) {
      const x = (lane.start[chosen.k] - begin) * perNs;
      pen.strokeStyle = getComputedStyle(document.body).color;
      pen.lineWidth = 2;
      pen.strokeRect(x, top + 1, Math.max(lane.dur[chosen.k] * perNs, 2), tall - 2);
    }
  };
  const draw = () => {
    const box = canvas.getBoundingClientRect(), dense = window.devicePixelRatio || 1;
    canvas.width = Math.max(Math.round(box.width * dense), 1);
    canvas.height = Math.max(Math.round(box.height * dense), 1);
    const zoom = canvas.width / wide;
    pen.font = `${11 * zoom}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    for (const lane of lanes) drawLane(lane, canvas.width, zoom);
    still.setAttribute("viewBox", `${from} 0 ${shown} ${high}`);
    scale.replaceChildren(...(shown === wide ? whole : marks()));
  };
  const move = units => { from = Math.min(Math.max(from + units, 0), wide - shown); draw(); };
  const zoom = (factor, at = from + shown / 2) => {
    const before = shown;
    shown = Math.min(Math.max(shown / factor, wide / 20000), wide);
    from = at - (at - from) * shown / before;
    move(0);
  };
  const unitAt = event => {
    const box = canvas.getBoundingClientRect();
    return from + (event.clientX - box.left) * shown / box.width;
  };
  const detail = document.createElement("p");
  detail.className = "detail";
  detail.setAttribute("role", "status");
  const some = listed < all ? ` The page has the ${listed} longest of ${all} events.` : "";
  detail.textContent = `Click an event or a gap to see what it is.${some}`;
  const say = (lane, k) => {
    const [, name, category] = kinds[lane.kind[k]], begin = lane.start[k], end = begin + lane.dur[k];
    const where = `${lane.title && lane.family !== "idle" ? lane.title + ", " : ""}${steps[lane.of]}`;
    const what = name === colours[category][2] ? name : `${name} (${colours[category][2]})`;
    let meanwhile = "";
    if (lane.family === "idle") {
      let most = 0;
      for (const other of lanes.filter(other => other.of === lane.of && other.family === "wall")) {
        for (let j = following(other, begin); j < other.start.length && other.start[j] < end; j++) {
          const shared = Math.min(other.start[j] + other.dur[j], end) - Math.max(other.start[j], begin);
          if (shared > most) { most = shared; meanwhile = `; longest cause: ${kinds[other.kind[j]][0]}, ${duration(shared)}`; }
        }
      }
    }
    detail.textContent = `${what}: ${duration(lane.dur[k])}, at +${duration(begin)}, ${where}${meanwhile}`;
  };
  // The event under the pointer, or the nearest within three pixels: most are narrower than that.
  const choose = event => {
    const box = canvas.getBoundingClientRect(), y = (event.clientY - box.top) * wide / box.width;
    const lane = lanes.find(lane => y >= lane.y && y < lane.y + lane.high + 2);
    if (!lane) return;
    const ns = unitAt(event) / wide * span, near = 3 * shown / wide * span / box.width, k = following(lane, ns);
    const away = j => j < 0 || j >= lane.start.length ? Infinity : Math.max(lane.start[j] - ns, ns - lane.start[j] - lane.dur[j], 0);
    const nearest = away(k) <= away(k - 1) ? k : k - 1;
    chosen = away(nearest) > near ? null : {lane, k: nearest};
    if (chosen) say(lane, nearest); else detail.textContent = "Nothing was recorded there.";
    draw();
  };
  canvas.addEventListener("dblclick", event => zoom(event.shiftKey ? 0.5 : 2, unitAt(event)));
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;  // the wheel alone scrolls the page; two fingers on a touchpad come as Ctrl and wheel
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, unitAt(event));
  }, {passive: false});
  let held = null, pressed = 0;
  canvas.addEventListener("pointerdown", event => { pressed = event.clientX; if (shown < wide) held = unitAt(event); });
  canvas.addEventListener("click", event => { if (Math.abs(event.clientX - pressed) < 4) choose(event); });
  addEventListener("pointermove", event => { if (held !== null) move(held - unitAt(event)); });
  addEventListener("pointerup", () => { held = null; });
  addEventListener("resize", draw);
  const actions = [
    ["+", "zoom in", () => zoom(2)], ["-", "zoom out", () => zoom(0.5)], ["ArrowLeft", "earlier", () => move(-shown / 4)],
    ["ArrowRight", "later", () => move(shown / 4)], ["0", "whole steps", () => zoom(0)],
  ];
  const bar = document.createElement("p");
  bar.className = "zoom";
  for (const [key, label, act] of actions) {
    const button = document.createElement("button");
    button.textContent = label;
    button.title = "key " + key.replace("Arrow", "").toLowerCase();
    button.addEventListener("click", act);
    bar.append(button);
  }
  const scrolled = picture.closest(".scroll") ?? picture.parentElement;
  scrolled.before(bar);
  scrolled.after(detail);
  picture.tabIndex = 0;
  picture.addEventListener("keydown", event => {
    const action = actions.find(([key]) => key === event.key);
    if (action) { event.preventDefault(); action[2](); }
  });
  draw();
}
