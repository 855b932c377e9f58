"use strict";
// The picture of typical steps: zoomed and moved, all variants together. Without this script it shows the whole steps.
for (const picture of document.querySelectorAll("svg.timeline")) {
  const lanes = picture.querySelector(".lanes"), names = picture.querySelector(".names"), scale = picture.querySelector(".scale");
  const number = (element, name) => Number(element.getAttribute(name));
  const gutter = number(lanes, "x"), wide = number(lanes, "width"), high = number(lanes, "height"), span = Number(picture.dataset.ns);
  const events = [...lanes.querySelectorAll(".on-light, .on-dark")].map(event => ({
    left: number(event, "x"), width: number(event, "width"), y: number(event, "y") + number(event, "height") / 2 + 4,
    look: event.classList[1], name: event.textContent,
  }));
  const whole = [[...names.childNodes], [...scale.childNodes]];
  let from = 0, shown = wide;  // in units of the whole steps
  const element = (kind, attributes, text) => {
    const made = document.createElementNS(picture.namespaceURI, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const name = event => {
    const x = unit => Math.min(Math.max((unit - from) * wide / shown, 0), wide);
    const left = x(event.left), letters = Math.floor((x(event.left + event.width) - left - 6) / 6.6);
    if (letters < 4) return [];
    const text = event.name.length <= letters ? event.name : event.name.slice(0, letters - 1) + "…";
    return [element("text", {class: event.look, x: gutter + left + 3, y: event.y}, text)];
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
  const draw = () => {
    lanes.setAttribute("viewBox", `${from} 0 ${shown} ${high}`);
    names.replaceChildren(...(shown === wide ? whole[0] : events.flatMap(name)));
    scale.replaceChildren(...(shown === wide ? whole[1] : marks()));
  };
  const move = units => { from = Math.min(Math.max(from + units, 0), wide - shown); draw(); };
  const zoom = (factor, at = from + shown / 2) => {
    const before = shown;
    shown = Math.min(Math.max(shown / factor, wide / 200), wide);
    from = at - (at - from) * shown / before;
    move(0);
  };
  const unitAt = event => {
    const box = picture.getBoundingClientRect();
    return from + ((event.clientX - box.left) * (gutter + wide) / box.width - gutter) * shown / wide;
  };
  picture.addEventListener("dblclick", event => zoom(event.shiftKey ? 0.5 : 2, unitAt(event)));
  picture.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;  // the wheel alone scrolls the page; two fingers on a touchpad come as Ctrl and wheel
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, unitAt(event));
  }, {passive: false});
  let held = null;
  picture.addEventListener("pointerdown", event => { if (shown < wide) held = unitAt(event); });
  addEventListener("pointermove", event => { if (held !== null) move(held - unitAt(event)); });
  addEventListener("pointerup", () => { held = null; });
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
  picture.parentElement.before(bar);
  picture.tabIndex = 0;
  picture.addEventListener("keydown", event => {
    const action = actions.find(([key]) => key === event.key);
    if (action) { event.preventDefault(); action[2](); }
  });
}
