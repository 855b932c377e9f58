/* The level around each step, and how far steps are from it: `PlainLevels` of usual.py, for many steps at once. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stddef.h>
#include <string.h>

/* All as usual.py has them. */
enum { LEVEL_STEPS = 31, RATIOS = 512, FIRST_LEVEL = 8, STRETCH = 6, DEVIATIONS = 20, MOST_TAILS = 3, MANY_RATIOS = 128 };
static const double LEAST_SHARE = 0.25, FEW_RATIOS = 32, TAILS[2][2] = {{0.80, 0.95}, {0.92, 0.98}};

typedef struct {
    double *ordered, *last;  /* by size; and in their order, from `oldest` on once it is full */
    int count, length, oldest;
} Window;

typedef struct {
    PyObject_HEAD
    Window level, ratios;
    double levels[2 * LEVEL_STEPS], shares[2 * RATIOS];  /* durations are whole numbers below 2^53 ns, 104 days */
} Levels;

/* Where a number belongs among ascending ones, before its equals. */
static int place(const double *ordered, int count, double number) {
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ordered[middle] < number) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Take in a number, in place of the oldest one. */
static void add(Window *window, double number) {
    double *ordered = window->ordered;
    if (window->count == window->length) {
        int gone = place(ordered, window->count, window->last[window->oldest]);
        memmove(ordered + gone, ordered + gone + 1, sizeof *ordered * (size_t)(--window->count - gone));
    }
    int at = place(ordered, window->count, number);
    memmove(ordered + at + 1, ordered + at, sizeof *ordered * (size_t)(window->count++ - at));
    ordered[at] = number;
    window->last[window->oldest] = number;
    window->oldest = (window->oldest + 1) % window->length;
}

static double level_of(Levels *self) {
    double level = self->level.count ? self->level.ordered[self->level.count / 2] : 0;
    return level > 1 ? level : 1;
}

static PyObject *take_in(Levels *self, PyObject *args) {
    PyObject *durations;
    int comparable;
    if (!PyArg_ParseTuple(args, "O!p", &PyList_Type, &durations, &comparable)) return NULL;
    for (Py_ssize_t k = 0; k < PyList_Size(durations); k++) {
        double step_ns = PyLong_AsDouble(PyList_GetItem(durations, k));
        if (step_ns == -1 && PyErr_Occurred()) return NULL;
        if (comparable && self->level.count >= FIRST_LEVEL) add(&self->ratios, step_ns / level_of(self));
        add(&self->level, step_ns);
    }
    Py_RETURN_NONE;
}

static PyObject *level_ns(Levels *self, void *Py_UNUSED(closure)) { return PyLong_FromDouble(level_of(self)); }

/* `_factor` and `_mad` of usual.py: times the level, beyond which a step is slow. */
static PyObject *factor(Levels *self, void *Py_UNUSED(closure)) {
    const double *ratio = self->ratios.ordered;
    int count = self->ratios.count, half = count / 2, low = 0, high = count - half;
    if (!count) return PyFloat_FromDouble(0);
    double tail = 0, median = ratio[half];
    for (int k = 0; k < 2; k++) {
        double lower = ratio[(int)(TAILS[k][0] * count)], upper = ratio[(int)(TAILS[k][1] * count)];
        double end = upper + STRETCH * (upper - lower) - 1;
        if (!k || end < tail) tail = end;
    }
    while (low < high) {
        int middle = (low + high) / 2;
        if (median - ratio[middle] <= ratio[middle + half] - median) high = middle;
        else low = middle + 1;
    }
    double below = median - ratio[low], above = half ? ratio[low + half - 1] - median : 0;
    double mad = below > above ? below : above, beyond = DEVIATIONS * mad;
    if (beyond > MOST_TAILS * tail) beyond = MOST_TAILS * tail;
    if (beyond < tail) beyond = tail;
    if (beyond < LEAST_SHARE) beyond = LEAST_SHARE;
    return PyFloat_FromDouble(1 + beyond * (count < MANY_RATIOS ? 1 + FEW_RATIOS / count : 1));
}

static PyObject *make(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs)) {
    Levels *self = (Levels *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->level = (Window){self->levels, self->levels + LEVEL_STEPS, 0, LEVEL_STEPS, 0};
    self->ratios = (Window){self->shares, self->shares + RATIOS, 0, RATIOS, 0};
    return (PyObject *)self;
}

static void delete(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"take_in", (PyCFunction)take_in, METH_VARARGS, "take_in(durations, are_comparable): steps in their order."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef computed[] = {
    {"level_ns", (getter)level_ns, NULL, "The median of the last steps.", NULL},
    {"factor", (getter)factor, NULL, "Times the level, beyond which a step is slow.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "As PlainLevels."},
    {Py_tp_new, make}, {Py_tp_dealloc, delete}, {Py_tp_methods, methods}, {Py_tp_getset, computed}, {0, NULL},
};
static PyType_Spec spec = {"tracekit.native._levels.Levels", sizeof(Levels), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_levels", "Levels of steps.", -1, NULL};

PyMODINIT_FUNC PyInit__levels(void) {
    PyObject *made = PyModule_Create(&module), *type = made ? PyType_FromSpec(&spec) : NULL;
    if (!type || PyModule_AddObjectRef(made, "Levels", type)) Py_CLEAR(made);
    Py_XDECREF(type);
    return made;
}
