/* What goes through rows one after the other, which NumPy cannot: `_in_python` of engine/replay.py and of topmost.py;
   and a search that begins where the one before ended: `place_among` of intervals.py. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

enum { DRAINED = 1, FULL = 2, HANDOVER = 3, ACTIVITY = 6 };  /* kinds, as dependencies.py has them */
enum { KIND, THREAD, LAUNCH, SOURCE, GAP, CLOCK, SINCE, OWN, DUR, BEFORE, DELAY, LATENCY, STREAM_GAP, READ,
       START = READ, END, AFTER, COLUMNS };
enum { NONE = -1 };
static const int64_t NEVER = -((int64_t)1 << 62);

/* Defined, whatever the numbers are. */
static int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at(const int64_t *times, int64_t node) { return node < 0 ? NEVER : times[node]; }
static int is_node(int64_t node, Py_ssize_t count) { return node >= NONE && node < count; }

/* 0, or -1 where a column names a node or a thread that does not exist. */
static int sweep(Py_ssize_t count, int64_t **column, Py_ssize_t threads, int64_t *offset, int64_t *moved) {
    int64_t *starts = column[START], *ends = column[END], *after = column[AFTER], reach = NEVER;
    for (Py_ssize_t node = 0; node < count; node++) starts[node] = ends[node] = NEVER, after[node] = NONE;
    for (Py_ssize_t thread = 0; thread < threads; thread++) offset[thread] = 0, moved[thread] = NONE;
    for (Py_ssize_t node = 0; node < count; node++) {
        int64_t kind = column[KIND][node], source = column[SOURCE][node], before = column[BEFORE][node];
        if (!is_node(before, count)) return -1;
        if (kind == ACTIVITY) {
            int64_t launch = column[LAUNCH][node], delay = column[DELAY][node], latency = column[LATENCY][node];
            if (!is_node(launch, count) || !is_node(source, count)) return -1;
            int64_t start = plus(at(starts, launch), latency), last = launch;
            int64_t queued = plus(at(ends, before), column[GAP][node]);
            if (queued > start) start = queued, last = before;
            if (at(ends, source) > start) start = at(ends, source), last = source;
            if (at(starts, before) > start) start = at(starts, before), last = before;
            if (delay < 0 && last >= 0) {
                start = latest(plus(start, delay), plus(at(starts, launch), latency < 0 ? latency : 0));
                start = latest(latest(start, plus(at(ends, before), column[STREAM_GAP][node])), at(ends, source));
            } else {
                start = last >= 0 ? plus(start, delay) : delay;
            }
            starts[node] = start, ends[node] = plus(start, column[DUR][node]), after[node] = last;
            reach = latest(reach, ends[node]);
            continue;
        }
        int64_t thread = column[THREAD][node];
        if (thread < 0 || thread >= threads) return -1;
        if (kind == HANDOVER) {
            if (source < 0 || source >= threads) return -1;
            after[node] = moved[source], offset[thread] = offset[source];
        } else if (kind < HANDOVER) {
            int64_t awaited = at(kind == FULL ? starts : ends, before);
            if (kind == DRAINED && before >= 0) awaited = latest(awaited, reach);
            int64_t begun = plus(offset[thread], column[SINCE][node]);
            after[node] = awaited > begun ? before : moved[thread];
            offset[thread] = minus(plus(latest(begun, awaited), column[OWN][node]), column[CLOCK][node]);
        } else {
            after[node] = moved[thread];
        }
        starts[node] = ends[node] = plus(offset[thread], column[CLOCK][node]);
        if (kind <= HANDOVER) moved[thread] = node;
    }
    return 0;
}

/* Hold the buffers of columns, of which those from `read` on are written. Returns how many: fewer than all where one
   fails, with the error set. */
static int hold(PyObject **columns, Py_buffer *views, int count, int read) {
    int held = 0;
    while (held < count && !PyObject_GetBuffer(columns[held], &views[held], held < read ? PyBUF_SIMPLE : PyBUF_WRITABLE))
        held++;
    return held;
}

static void release(Py_buffer *views, int held) {
    while (held) PyBuffer_Release(&views[--held]);
}

static PyObject *sweep_columns(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *columns, *result = NULL;
    Py_ssize_t threads;
    if (!PyArg_ParseTuple(args, "nO", &threads, &columns)) return NULL;
    Py_buffer views[COLUMNS];
    int64_t *column[COLUMNS], *clocks = NULL;
    int held = 0;
    if (!PyList_Check(columns) || PyList_Size(columns) != COLUMNS || threads < 1 || threads > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "not as many columns, or no thread");
        return NULL;
    }
    for (; held < COLUMNS; held++) {
        if (PyObject_GetBuffer(PyList_GetItem(columns, held), &views[held], held < READ ? PyBUF_SIMPLE : PyBUF_WRITABLE))
            goto done;
        column[held] = views[held].buf;
        if (views[held].len != views[0].len) {
            PyErr_SetString(PyExc_ValueError, "columns of different lengths");
            held++;
            goto done;
        }
    }
    if (!(clocks = malloc(2 * sizeof *clocks * (size_t)threads))) {
        PyErr_NoMemory();
        goto done;
    }
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = sweep(views[0].len / (Py_ssize_t)sizeof **column, column, threads, clocks, clocks + threads);
    Py_END_ALLOW_THREADS
    if (failed) PyErr_SetString(PyExc_ValueError, "no such node or thread");
    else Py_INCREF(result = Py_None);
done:
    free(clocks);
    release(views, held);
    return result;
}

/* The first cell from this one on that is not painted; what leads there gets shorter on the way. */
static int32_t unpainted(int32_t *next, int32_t cell) {
    while (next[cell] != cell) cell = next[cell] = next[next[cell]];
    return cell;
}

static PyObject *paint_intervals(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *objects[3], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOO", &objects[0], &objects[1], &objects[2])) return NULL;
    Py_buffer views[3];
    int32_t *next = NULL;
    int held = hold(objects, views, 3, 2);
    if (held < 3) goto done;
    const int64_t *lows = views[0].buf, *highs = views[1].buf;
    int32_t *canvas = views[2].buf;
    Py_ssize_t count = views[0].len / (Py_ssize_t)sizeof *lows, length = views[2].len / (Py_ssize_t)sizeof *canvas;
    int valid = views[1].len == views[0].len && count <= INT32_MAX && length < INT32_MAX;
    for (Py_ssize_t k = 0; valid && k < count; k++) valid = lows[k] >= highs[k] || (lows[k] >= 0 && highs[k] <= length);
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "an interval outside, or too many");
        goto done;
    }
    if (!(next = malloc(sizeof *next * (size_t)(length + 1)))) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t cell = 0; cell <= length; cell++) next[cell] = (int32_t)cell;
    for (Py_ssize_t cell = 0; cell < length; cell++) canvas[cell] = NONE;
    for (Py_ssize_t k = count; k-- > 0;)  /* the last one is on top */
        if (lows[k] < highs[k])
            for (int32_t cell = unpainted(next, (int32_t)lows[k]); cell < highs[k]; cell = unpainted(next, cell)) {
                canvas[cell] = (int32_t)k;
                next[cell] = cell + 1;
            }
    Py_END_ALLOW_THREADS
    Py_INCREF(result = Py_None);
done:
    free(next);
    release(views, held);
    return result;
}

/* The first of the ascending edges that is at or after the point, or after it. Looked for from the answer of the point
   before, in steps that double: points mostly ascend, and the answer is near. */
#define SEARCH(KIND)                                                                                                   \
    static inline Py_ssize_t near_##KIND(const KIND *edges, Py_ssize_t count, KIND point, int after, Py_ssize_t place) { \
        Py_ssize_t low = place, high = place, step = 1;                                                                \
        if (place < count && (after ? edges[place] <= point : edges[place] < point)) {                                 \
            low = high = place + 1;                                                                                    \
            while (high < count && (after ? edges[high] <= point : edges[high] < point)) {                             \
                low = high + 1;                                                                                        \
                high = step < count - high ? high + step : count;                                                      \
                step *= 2;                                                                                             \
            }                                                                                                          \
        } else {                                                                                                       \
            while (low > 0 && (after ? edges[low - 1] > point : edges[low - 1] >= point)) {                            \
                high = low - 1;                                                                                        \
                low = step < high ? high - step : 0;                                                                   \
                step *= 2;                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        while (low < high) {                                                                                           \
            Py_ssize_t middle = low + (high - low) / 2;                                                                \
            if (after ? edges[middle] <= point : edges[middle] < point) low = middle + 1;                              \
            else high = middle;                                                                                        \
        }                                                                                                              \
        return low;                                                                                                    \
    }                                                                                                                  \
    static void search_##KIND(const KIND *edges, Py_ssize_t count, const KIND *points, Py_ssize_t asked, int after,    \
                              int64_t *places) {                                                                       \
        Py_ssize_t place = 0;                                                                                          \
        if (after) for (Py_ssize_t k = 0; k < asked; k++) places[k] = place = near_##KIND(edges, count, points[k], 1, place); \
        else for (Py_ssize_t k = 0; k < asked; k++) places[k] = place = near_##KIND(edges, count, points[k], 0, place); \
    }
SEARCH(int32_t)
SEARCH(int64_t)

static PyObject *search_points(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *objects[3], *result = NULL;
    int after, width;
    if (!PyArg_ParseTuple(args, "OOipO", &objects[0], &objects[1], &width, &after, &objects[2])) return NULL;
    Py_buffer views[3];
    int held = hold(objects, views, 3, 2);
    if (held < 3) goto done;
    if ((width != 4 && width != 8) || views[0].len % width || views[1].len % width ||
        views[2].len != views[1].len / width * 8) {
        PyErr_SetString(PyExc_ValueError, "columns of other widths or lengths");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    if (width == 4) search_int32_t(views[0].buf, views[0].len / 4, views[1].buf, views[1].len / 4, after, views[2].buf);
    else search_int64_t(views[0].buf, views[0].len / 8, views[1].buf, views[1].len / 8, after, views[2].buf);
    Py_END_ALLOW_THREADS
    Py_INCREF(result = Py_None);
done:
    release(views, held);
    return result;
}

/* How much of the time before the point disjoint, ascending intervals cover. `place` is how many start at or before it,
   `sums` are the lengths of all before each. */
static int64_t covered(const int64_t *ends, const int64_t *sums, int64_t point, Py_ssize_t place) {
    int64_t over = place && ends[place - 1] > point ? minus(ends[place - 1], point) : 0;
    return minus(sums[place], over);
}

static PyObject *cover_stretches(PyObject *Py_UNUSED(module), PyObject *args) {
    enum { STARTS, ENDS, LOWS, HIGHS, COVERED, ALL };
    PyObject *objects[ALL], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4])) return NULL;
    Py_buffer views[ALL];
    int64_t *column[ALL], *sums = NULL;
    int held = hold(objects, views, ALL, COVERED);
    if (held < ALL) goto done;
    for (int k = 0; k < ALL; k++) column[k] = views[k].buf;
    Py_ssize_t count = views[STARTS].len / (Py_ssize_t)sizeof *sums, asked = views[LOWS].len / (Py_ssize_t)sizeof *sums;
    if (views[ENDS].len != views[STARTS].len || views[HIGHS].len != views[LOWS].len ||
        views[COVERED].len != views[LOWS].len) {
        PyErr_SetString(PyExc_ValueError, "columns of different lengths");
        goto done;
    }
    if (!(sums = malloc(sizeof *sums * (size_t)(count + 1)))) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    sums[0] = 0;
    for (Py_ssize_t k = 0; k < count; k++) sums[k + 1] = plus(sums[k], minus(column[ENDS][k], column[STARTS][k]));
    Py_ssize_t low = 0, high = 0;
    for (Py_ssize_t k = 0; k < asked; k++) {
        int64_t from = column[LOWS][k], to = latest(column[HIGHS][k], from);
        low = near_int64_t(column[STARTS], count, from, 1, low);
        high = near_int64_t(column[STARTS], count, to, 1, high);
        column[COVERED][k] = minus(covered(column[ENDS], sums, to, high), covered(column[ENDS], sums, from, low));
    }
    Py_END_ALLOW_THREADS
    Py_INCREF(result = Py_None);
done:
    free(sums);
    release(views, held);
    return result;
}

static PyMethodDef functions[] = {
    {"cover", cover_stretches, METH_VARARGS,
     "cover(starts, ends, lows, highs, covered): how much of each stretch ascending intervals cover."},
    {"paint", paint_intervals, METH_VARARGS, "paint(lows, highs, canvas): the last interval on each cell, -1 for none."},
    {"search", search_points, METH_VARARGS,
     "search(edges, points, width, after, places): where each point belongs among the ascending edges."},
    {"sweep", sweep_columns, METH_VARARGS, "sweep(threads, columns): fill the last three of these columns of int64."},
    {0},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_loops", "Loops over rows.", -1, functions};

PyMODINIT_FUNC PyInit__loops(void) { return PyModule_Create(&module); }
