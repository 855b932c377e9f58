/* The end of a step that nothing is to be said of, in about a µs: `Observation.end` does the same for every step, in
   Python. `Tally` holds what both need. Only for Linux, whose clocks and files it reads. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#if !defined(__linux__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "only for Linux, and for processors whose numbers begin with the lowest byte, as those of a record do"
#endif

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { UNKNOWN = -1 };
enum { NUMBER, BEGAN, STEP, HOST, WAITED, BATCHES, COMPILE, COMPILES, COLLECT, COLLECTIONS, RETRIES, PEAK, PROCESSOR,
       QUEUED, NODES, EDGES, WORKER, USUAL, LIMIT, FLAGS, CAUSE, FIELDS };  /* of a step, as record.py has them */
enum { UNREAD_NS = 2000000, SHORT_NS = 1000000 };  /* as clocks.py has them */

typedef struct {
    PyObject_HEAD
    PyObject *optimizer, *iterators, *attend, *clock;
    Py_buffer record;  /* without memory as long as none is given */
    Py_ssize_t count_at, ring_at, capacity;
    long long thread, number, began_ns, unix_ns, due_ns, usual_ns, limit_ns, left, peak_bytes;
    long long waited_ns, batches, longest_wait_ns, worker, maker, wait_began_ns;
    long long compile_ns, compiles, compile_began_ns, collect_ns, collections, collect_began_ns, nodes, edges;
    long long schedstat, processor_ns, queued_ns, unread_ns, off_core_ns;
    char has_marks, is_asked, apart, loading;
} Tally;

enum { HOST_CLOCK, THREAD_CLOCK, QUEUE_CLOCK };

/* A clock that is asked instead of the system; its errors are left for the caller. */
static int64_t asked(Tally *self, int which) {
    PyObject *told = PyObject_CallFunction(self->clock, "i", which);
    int64_t ns = told ? PyLong_AsLongLong(told) : 0;
    Py_XDECREF(told);
    return ns;
}

static int64_t now_of(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* As time.perf_counter_ns(), which reads the same clock. */
static int64_t now(Tally *self) { return self->clock ? asked(self, HOST_CLOCK) : now_of(CLOCK_MONOTONIC); }

static int is_driving(Tally *self) { return self->thread == (long long)PyThread_get_thread_ident(); }

static void clear(Tally *self, int64_t at) {
    self->waited_ns = self->batches = self->longest_wait_ns = 0;
    self->compile_ns = self->compiles = self->collect_ns = self->collections = 0;
    self->worker = self->nodes = self->edges = UNKNOWN;
    self->apart = 0;
    if (self->compile_began_ns) self->compile_began_ns = at;  /* one that goes on belongs to both steps */
}

/* How long the thread was ready without a core so far, as the system told; as before, if it does not tell. */
static int64_t queued(Tally *self) {
    if (self->clock) return asked(self, QUEUE_CLOCK);
    char text[64];
    ssize_t length = pread((int)self->schedstat, text, sizeof text - 1, 0);
    if (length <= 0) return self->queued_ns;
    text[length] = 0;
    char *second = NULL;
    strtoll(text, &second, 10);
    return strtoll(second, NULL, 10);
}

/* ThreadClock.passed, in C. */
static void pass(Tally *self, int64_t host_ns, int64_t *entry) {
    int64_t unread_ns = self->unread_ns + host_ns;
    entry[PROCESSOR] = entry[QUEUED] = UNKNOWN;
    if (unread_ns < UNREAD_NS) {
        self->unread_ns = unread_ns;
        return;
    }
    int64_t processor_ns = self->clock ? asked(self, THREAD_CLOCK) : now_of(CLOCK_THREAD_CPUTIME_ID);
    int64_t had_core_ns = processor_ns - self->processor_ns;
    int64_t on_core_ns = had_core_ns > self->unread_ns ? had_core_ns - self->unread_ns : 0;
    if (unread_ns > had_core_ns) self->off_core_ns += unread_ns - had_core_ns;
    self->processor_ns = processor_ns, self->unread_ns = 0;
    entry[PROCESSOR] = on_core_ns, entry[QUEUED] = 0;
    if (self->off_core_ns < SHORT_NS) return;
    self->off_core_ns = 0;
    entry[QUEUED] = UNKNOWN;
    if (self->schedstat < 0) return;
    int64_t before = self->queued_ns, most = host_ns - on_core_ns;
    self->queued_ns = queued(self);
    int64_t waited_ns = self->queued_ns - before < most ? self->queued_ns - before : most;
    entry[QUEUED] = waited_ns > 0 ? waited_ns : 0;
}

static PyObject *end_step(Tally *self, PyObject *optimizer) {
    if (optimizer != Py_None && self->has_marks) Py_RETURN_TRUE;
    if (optimizer == Py_None ? !self->has_marks : optimizer != self->optimizer) Py_RETURN_FALSE;
    if (!self->record.buf || self->is_asked || self->apart || !is_driving(self)) Py_RETURN_FALSE;
    int64_t at = now(self), host_ns = at - self->began_ns;
    if (host_ns > self->limit_ns || !self->attend) Py_RETURN_FALSE;
    char *bytes = self->record.buf;
    int64_t *count = (int64_t *)(bytes + self->count_at);
    int64_t *entry = (int64_t *)(bytes + self->ring_at) + *count % self->capacity * FIELDS;
    pass(self, host_ns, entry);
    entry[NUMBER] = self->number++, entry[BEGAN] = self->unix_ns + self->began_ns;
    entry[STEP] = entry[HOST] = host_ns;
    entry[WAITED] = self->waited_ns, entry[BATCHES] = self->batches;
    entry[COMPILE] = self->compile_ns, entry[COMPILES] = self->compiles;
    entry[COLLECT] = self->collect_ns, entry[COLLECTIONS] = self->collections;
    entry[RETRIES] = 0, entry[PEAK] = self->peak_bytes;
    entry[NODES] = self->nodes, entry[EDGES] = self->edges, entry[WORKER] = self->worker;
    entry[USUAL] = self->usual_ns, entry[LIMIT] = self->limit_ns, entry[FLAGS] = entry[CAUSE] = 0;
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);  /* a kill leaves whole entries */
    clear(self, at);
    self->began_ns = at, self->left--;
    if (self->iterators && PyList_Size(self->iterators) > 0 &&
        PyList_SetSlice(self->iterators, 0, PyList_Size(self->iterators), NULL))
        return NULL;
    if (self->clock && PyErr_Occurred()) return NULL;
    if (self->left <= 0 || at > self->due_ns) {
        PyObject *attended = PyObject_CallNoArgs(self->attend);
        if (!attended) return NULL;
        Py_DECREF(attended);
    }
    Py_RETURN_TRUE;
}

static PyObject *clear_tally(Tally *self, PyObject *Py_UNUSED(nothing)) {
    clear(self, now(self));
    if (self->iterators && PyList_SetSlice(self->iterators, 0, PyList_Size(self->iterators), NULL)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *begin_wait(Tally *self, PyObject *Py_UNUSED(nothing)) {
    if (self->loading || !is_driving(self)) Py_RETURN_FALSE;
    self->loading = 1, self->maker = UNKNOWN, self->wait_began_ns = now(self);
    Py_RETURN_TRUE;
}

static PyObject *end_wait(Tally *self, PyObject *args) {
    long long batches, worker;
    if (!PyArg_ParseTuple(args, "LL", &batches, &worker)) return NULL;
    int64_t waited_ns = now(self) - self->wait_began_ns;
    self->loading = 0, self->waited_ns += waited_ns, self->batches += batches;
    if (waited_ns > self->longest_wait_ns) self->longest_wait_ns = waited_ns, self->worker = worker;
    Py_RETURN_NONE;
}

static PyObject *collection(Tally *self, PyObject *args) {
    PyObject *phase, *facts;
    if (!PyArg_ParseTuple(args, "UO", &phase, &facts)) return NULL;
    if (!PyUnicode_CompareWithASCIIString(phase, "start")) {
        self->collect_began_ns = now(self);
    } else if (self->collect_began_ns) {
        self->collect_ns += now(self) - self->collect_began_ns, self->collections++;
        self->collect_began_ns = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *release(Tally *self, PyObject *Py_UNUSED(nothing)) {
    if (self->record.buf) PyBuffer_Release(&self->record);
    self->record.buf = NULL;
    Py_RETURN_NONE;
}

static PyObject *write_to(Tally *self, PyObject *args) {
    PyObject *memory;
    Py_ssize_t count_at, ring_at, capacity;
    if (!PyArg_ParseTuple(args, "Onnn", &memory, &count_at, &ring_at, &capacity)) return NULL;
    Py_XDECREF(release(self, NULL));
    if (PyObject_GetBuffer(memory, &self->record, PyBUF_WRITABLE)) return NULL;
    Py_ssize_t entry = FIELDS * (Py_ssize_t)sizeof(int64_t), room = self->record.len - ring_at;
    if (count_at < 0 || ring_at < count_at + 8 || capacity < 1 || room < 0 || room / entry < capacity ||
        ((uintptr_t)self->record.buf + (size_t)count_at) % 8 || ((uintptr_t)self->record.buf + (size_t)ring_at) % 8) {
        Py_XDECREF(release(self, NULL));
        PyErr_SetString(PyExc_ValueError, "the ring is not in this memory");
        return NULL;
    }
    self->count_at = count_at, self->ring_at = ring_at, self->capacity = capacity;
    Py_RETURN_TRUE;
}

static PyObject *make(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs)) {
    Tally *self = (Tally *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    if (!(self->iterators = PyList_New(0))) {
        Py_DECREF(self);
        return NULL;
    }
    self->thread = (long long)PyThread_get_thread_ident();
    self->maker = self->schedstat = self->peak_bytes = self->limit_ns = self->usual_ns = UNKNOWN;
    clear(self, 0);
    return (PyObject *)self;
}

static int traverse(Tally *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->optimizer);
    Py_VISIT(self->iterators);
    Py_VISIT(self->attend);
    Py_VISIT(self->clock);
    Py_VISIT(self->record.obj);
    return 0;
}

static int forget(Tally *self) {
    Py_CLEAR(self->optimizer);
    Py_CLEAR(self->iterators);
    Py_CLEAR(self->attend);
    Py_CLEAR(self->clock);
    Py_XDECREF(release(self, NULL));
    return 0;
}

static void delete(Tally *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    forget(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define NUMBER_OF(name) {#name, T_LONGLONG, offsetof(Tally, name), 0, NULL}
#define FLAG_OF(name) {#name, T_BOOL, offsetof(Tally, name), 0, NULL}
#define OBJECT_OF(name) {#name, T_OBJECT, offsetof(Tally, name), 0, NULL}

static PyMemberDef members[] = {
    OBJECT_OF(optimizer), OBJECT_OF(iterators), OBJECT_OF(attend), OBJECT_OF(clock),
    FLAG_OF(has_marks), FLAG_OF(is_asked), FLAG_OF(apart), FLAG_OF(loading),
    NUMBER_OF(thread), NUMBER_OF(number), NUMBER_OF(began_ns), NUMBER_OF(unix_ns), NUMBER_OF(due_ns),
    NUMBER_OF(usual_ns), NUMBER_OF(limit_ns), NUMBER_OF(left), NUMBER_OF(peak_bytes),
    NUMBER_OF(waited_ns), NUMBER_OF(batches), NUMBER_OF(longest_wait_ns), NUMBER_OF(worker), NUMBER_OF(maker),
    NUMBER_OF(wait_began_ns), NUMBER_OF(compile_ns), NUMBER_OF(compiles), NUMBER_OF(compile_began_ns),
    NUMBER_OF(collect_ns), NUMBER_OF(collections), NUMBER_OF(collect_began_ns), NUMBER_OF(nodes), NUMBER_OF(edges),
    NUMBER_OF(schedstat), NUMBER_OF(processor_ns), NUMBER_OF(queued_ns), NUMBER_OF(unread_ns), NUMBER_OF(off_core_ns),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"end", (PyCFunction)end_step, METH_O, "end(optimizer): a step ends; False if nothing of that is noted."},
    {"clear", (PyCFunction)clear_tally, METH_NOARGS, "clear(): a new step begins."},
    {"begin_wait", (PyCFunction)begin_wait, METH_NOARGS, "begin_wait(): the loop waits; False if it does already."},
    {"end_wait", (PyCFunction)end_wait, METH_VARARGS, "end_wait(batches, worker): the loop has so many batches."},
    {"collection", (PyCFunction)collection, METH_VARARGS, "collection(phase, facts): called by Python."},
    {"write_to", (PyCFunction)write_to, METH_VARARGS, "write_to(memory, count_at, ring_at, capacity): of a record."},
    {"release", (PyCFunction)release, METH_NOARGS, "release(): write to no record any more."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What has happened since the current step began."},
    {Py_tp_new, make}, {Py_tp_dealloc, delete}, {Py_tp_traverse, traverse}, {Py_tp_clear, forget},
    {Py_tp_members, members}, {Py_tp_methods, methods}, {0, NULL},
};
static PyType_Spec spec = {"tracekit.native._steps.Tally", sizeof(Tally), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_steps", "Ends of steps.", -1, NULL};

PyMODINIT_FUNC PyInit__steps(void) {
    PyObject *made = PyModule_Create(&module), *counters = made ? PyType_FromSpec(&spec) : NULL;
    if (!counters || PyModule_AddObjectRef(made, "Tally", counters)) Py_CLEAR(made);
    Py_XDECREF(counters);
    return made;
}
