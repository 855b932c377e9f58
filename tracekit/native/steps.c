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
enum { PENDING = 64, SPARE = PENDING + 2 };  /* steps that the host may be ahead of the GPU; events to use again */
enum { MAKE, RECORD, STREAM, CAPTURING, QUERY, ELAPSED, DEVICE, CALLS };  /* of a GPU's runtime, as clocks.py has them */
enum { UNREAD_NS = 2000000, SHORT_NS = 1000000, SHORT_PART = 32 };  /* as clocks.py has them */

typedef struct {
    PyObject *begin, *end;  /* events; NULL where none could be recorded */
    long long number;
} Pending;

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
    PyObject *gpu[CALLS], *stream, *stream_key, *last, *spare[SPARE];  /* without a GPU, none */
    Pending pending[PENDING];  /* a ring: steps that the GPU has not passed yet */
    int first, waiting, spares;
    long long resolved_ns;
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
    if (self->off_core_ns < SHORT_NS || self->off_core_ns < host_ns / SHORT_PART) return;
    self->off_core_ns = 0;
    entry[QUEUED] = UNKNOWN;
    if (self->schedstat < 0) return;
    int64_t before = self->queued_ns, most = host_ns - on_core_ns;
    self->queued_ns = queued(self);
    int64_t waited_ns = self->queued_ns - before < most ? self->queued_ns - before : most;
    entry[QUEUED] = waited_ns > 0 ? waited_ns : 0;
}

static int64_t *entry_of(Tally *self, int64_t number) {
    return (int64_t *)((char *)self->record.buf + self->ring_at) + number % self->capacity * FIELDS;
}

/* Whether the GPU has passed this event; -1 with an error. */
static int is_passed(Tally *self, PyObject *event) {
    PyObject *told = PyObject_CallFunctionObjArgs(self->gpu[QUERY], event, NULL);
    int passed = told ? PyObject_IsTrue(told) : -1;
    Py_XDECREF(told);
    return passed;
}

static PyObject *fresh_event(Tally *self, PyObject *Py_UNUSED(nothing)) {
    return self->spares ? self->spare[--self->spares] : PyObject_CallNoArgs(self->gpu[MAKE]);
}

/* The event ends this step, and begins the next one; both may have none. */
static void push(Tally *self, int64_t number, PyObject *event) {
    Pending *step = &self->pending[(self->first + self->waiting++) % PENDING];
    step->begin = self->last, step->end = event, step->number = number;
    Py_XINCREF(event);
    self->last = event;
    Py_XINCREF(event);
}

static PyObject *pop(Tally *self, PyObject *Py_UNUSED(nothing)) {
    if (!self->waiting) Py_RETURN_NONE;
    Pending *step = &self->pending[self->first];
    self->first = (self->first + 1) % PENDING, self->waiting--;
    if (step->begin && self->spares < SPARE) self->spare[self->spares++] = step->begin;
    else Py_XDECREF(step->begin);
    Py_XDECREF(step->end);
    step->begin = step->end = NULL;
    Py_RETURN_NONE;
}

/* Write down how long the steps took that the GPU has passed. The number of one of which more is to be said, with
   `resolved_ns` set: it stays pending. UNKNOWN if there is none; -2 with an error. */
static int64_t resolve(Tally *self) {
    while (self->waiting) {
        Pending *step = &self->pending[self->first];
        int is_over = step->end ? is_passed(self, step->end) : 1, has_begun = is_over > 0 && step->begin;
        if (is_over < 0) return -2;
        if (!is_over && self->waiting < PENDING) return UNKNOWN;
        /* On another stream than before, the end may be passed before the beginning. */
        if (has_begun && step->end && (has_begun = is_passed(self, step->begin)) < 0) return -2;
        self->resolved_ns = UNKNOWN;
        if (has_begun && step->end) {
            PyObject *ms = PyObject_CallFunctionObjArgs(self->gpu[ELAPSED], step->begin, step->end, NULL);
            double passed_ms = ms ? PyFloat_AsDouble(ms) : -1;
            Py_XDECREF(ms);
            if (PyErr_Occurred()) return -2;
            if (passed_ms >= 0) self->resolved_ns = (long long)(passed_ms * 1e6 + 0.5);
        }
        int64_t *entry = entry_of(self, step->number);
        if (self->resolved_ns < 0 || self->resolved_ns > self->limit_ns || entry[FLAGS]) return step->number;
        entry[STEP] = self->resolved_ns, self->left--;
        Py_XDECREF(pop(self, NULL));
    }
    return UNKNOWN;
}

static PyObject *resolve_steps(Tally *self, PyObject *Py_UNUSED(nothing)) {
    int64_t number = self->record.buf && self->gpu[MAKE] ? resolve(self) : UNKNOWN;
    return number < UNKNOWN ? NULL : PyLong_FromLongLong(number);
}

/* Whether an event can be recorded on the stream as it was last; -1 with an error. */
static int can_record(Tally *self) {
    PyObject *capturing = PyObject_CallNoArgs(self->gpu[CAPTURING]), *key = NULL;
    int can = capturing == Py_False && self->stream && self->stream_key;
    if (can) key = PyObject_CallFunctionObjArgs(self->gpu[STREAM], self->gpu[DEVICE], NULL);
    if (key) can = PyObject_RichCompareBool(key, self->stream_key, Py_EQ);
    Py_XDECREF(capturing);
    Py_XDECREF(key);
    return PyErr_Occurred() ? -1 : can;
}

static PyObject *mark_end(Tally *self, PyObject *args) {
    long long number;
    PyObject *event;
    if (!PyArg_ParseTuple(args, "LO", &number, &event)) return NULL;
    if (self->waiting == PENDING) {
        PyErr_SetString(PyExc_IndexError, "too many steps are pending");
        return NULL;
    }
    push(self, number, event == Py_None ? NULL : event);
    Py_RETURN_NONE;
}

static PyObject *restart(Tally *self, PyObject *event) {
    Py_XDECREF(self->last);
    self->last = event == Py_None ? NULL : event;
    Py_XINCREF(self->last);
    Py_RETURN_NONE;
}

static PyObject *use_gpu(Tally *self, PyObject *args) {
    PyObject *calls[CALLS];
    if (!PyArg_ParseTuple(args, "OOOOOOO", &calls[MAKE], &calls[RECORD], &calls[STREAM], &calls[CAPTURING],
                          &calls[QUERY], &calls[ELAPSED], &calls[DEVICE]))
        return NULL;
    for (int k = 0; k < CALLS; k++) {
        Py_XDECREF(self->gpu[k]);
        Py_INCREF(self->gpu[k] = calls[k]);
    }
    Py_RETURN_TRUE;
}

/* Whether the steps of this optimizer end steps. Only a weak reference to that one is kept. */
static int is_counted(Tally *self, PyObject *optimizer) {
    PyObject *known = self->optimizer;
    return known && PyWeakref_CheckRef(known) && PyWeakref_GetObject(known) == optimizer;
}

static PyObject *end_plain_step(Tally *self, PyObject *optimizer) {
    if (optimizer != Py_None && self->has_marks) Py_RETURN_TRUE;
    if (optimizer == Py_None ? !self->has_marks : !is_counted(self, optimizer)) Py_RETURN_FALSE;
    if (!self->record.buf || self->is_asked || self->apart || !is_driving(self)) Py_RETURN_FALSE;
    int64_t at = now(self), host_ns = at - self->began_ns;
    int64_t *count = (int64_t *)((char *)self->record.buf + self->count_at), *entry = entry_of(self, *count);
    if (host_ns > self->limit_ns || !self->attend || *count != self->number) Py_RETURN_FALSE;
    PyObject *event = NULL;
    if (self->gpu[MAKE]) {
        int can = self->waiting < PENDING ? can_record(self) : 0;
        if (can < 0) return NULL;
        if (!can) Py_RETURN_FALSE;
        if (!(event = fresh_event(self, NULL))) return NULL;
        PyObject *recorded = PyObject_CallFunctionObjArgs(self->gpu[RECORD], event, self->stream, NULL);
        if (!recorded) {
            Py_DECREF(event);
            return NULL;
        }
        Py_DECREF(recorded);
        if (!self->record.buf) {  /* to make an event is Python's: a handler of a signal may have closed the record */
            Py_DECREF(event);
            Py_RETURN_FALSE;
        }
    }
    pass(self, host_ns, entry);
    entry[NUMBER] = self->number++, entry[BEGAN] = self->unix_ns + self->began_ns;
    entry[STEP] = event ? UNKNOWN : host_ns, entry[HOST] = host_ns;
    entry[WAITED] = self->waited_ns, entry[BATCHES] = self->batches;
    entry[COMPILE] = self->compile_ns, entry[COMPILES] = self->compiles;
    entry[COLLECT] = self->collect_ns, entry[COLLECTIONS] = self->collections;
    entry[RETRIES] = 0, entry[PEAK] = self->peak_bytes;
    entry[NODES] = self->nodes, entry[EDGES] = self->edges, entry[WORKER] = self->worker;
    entry[USUAL] = self->usual_ns, entry[LIMIT] = self->limit_ns, entry[FLAGS] = entry[CAUSE] = 0;
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);  /* a kill leaves whole entries */
    clear(self, at);
    self->began_ns = at;
    int64_t told = UNKNOWN;
    if (event) {
        push(self, self->number - 1, event);
        Py_DECREF(event);
    } else {
        self->left--;
    }
    if (self->iterators && PyList_Size(self->iterators) > 0 &&
        PyList_SetSlice(self->iterators, 0, PyList_Size(self->iterators), NULL))
        return NULL;
    if (self->clock && PyErr_Occurred()) return NULL;
    if (event && (told = resolve(self)) < UNKNOWN) PyErr_Clear();  /* Python asks again, and says what it was */
    if (told != UNKNOWN || self->left <= 0 || at > self->due_ns) {
        PyObject *attended = PyObject_CallNoArgs(self->attend);
        if (!attended) return NULL;
        Py_DECREF(attended);
    }
    Py_RETURN_TRUE;
}

/* Nothing that goes wrong here may end a training: Python then does it again, and says what it was. */
static PyObject *end_step(Tally *self, PyObject *optimizer) {
    PyObject *noted = end_plain_step(self, optimizer);
    if (noted || !PyErr_ExceptionMatches(PyExc_Exception)) return noted;
    PyErr_Clear();
    Py_RETURN_FALSE;
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
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->optimizer);
    Py_VISIT(self->iterators);
    Py_VISIT(self->attend);
    Py_VISIT(self->clock);
    Py_VISIT(self->record.obj);
    for (int k = 0; k < CALLS; k++) Py_VISIT(self->gpu[k]);
    for (int k = 0; k < self->spares; k++) Py_VISIT(self->spare[k]);
    for (int k = 0; k < PENDING; k++) {
        Py_VISIT(self->pending[k].begin);
        Py_VISIT(self->pending[k].end);
    }
    Py_VISIT(self->stream);
    Py_VISIT(self->stream_key);
    Py_VISIT(self->last);
    return 0;
}

static int forget(Tally *self) {
    Py_CLEAR(self->optimizer);
    Py_CLEAR(self->iterators);
    Py_CLEAR(self->attend);
    Py_CLEAR(self->clock);
    Py_XDECREF(release(self, NULL));
    while (self->waiting) Py_XDECREF(pop(self, NULL));
    while (self->spares) Py_DECREF(self->spare[--self->spares]);
    for (int k = 0; k < CALLS; k++) Py_CLEAR(self->gpu[k]);
    Py_CLEAR(self->stream);
    Py_CLEAR(self->stream_key);
    Py_CLEAR(self->last);
    return 0;
}

static void delete(Tally *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
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
    OBJECT_OF(stream), OBJECT_OF(stream_key),
    FLAG_OF(has_marks), FLAG_OF(is_asked), FLAG_OF(apart), FLAG_OF(loading),
    NUMBER_OF(thread), NUMBER_OF(number), NUMBER_OF(began_ns), NUMBER_OF(unix_ns), NUMBER_OF(due_ns),
    NUMBER_OF(usual_ns), NUMBER_OF(limit_ns), NUMBER_OF(left), NUMBER_OF(peak_bytes),
    NUMBER_OF(waited_ns), NUMBER_OF(batches), NUMBER_OF(longest_wait_ns), NUMBER_OF(worker), NUMBER_OF(maker),
    NUMBER_OF(wait_began_ns), NUMBER_OF(compile_ns), NUMBER_OF(compiles), NUMBER_OF(compile_began_ns),
    NUMBER_OF(collect_ns), NUMBER_OF(collections), NUMBER_OF(collect_began_ns), NUMBER_OF(nodes), NUMBER_OF(edges),
    NUMBER_OF(schedstat), NUMBER_OF(processor_ns), NUMBER_OF(queued_ns), NUMBER_OF(unread_ns), NUMBER_OF(off_core_ns),
    NUMBER_OF(resolved_ns), {"waiting", T_INT, offsetof(Tally, waiting), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"end", (PyCFunction)end_step, METH_O, "end(optimizer): a step ends; False if nothing of that is noted."},
    {"clear", (PyCFunction)clear_tally, METH_NOARGS, "clear(): a new step begins."},
    {"begin_wait", (PyCFunction)begin_wait, METH_NOARGS, "begin_wait(): the loop waits; False if it does already."},
    {"end_wait", (PyCFunction)end_wait, METH_VARARGS, "end_wait(batches, worker): the loop has so many batches."},
    {"collection", (PyCFunction)collection, METH_VARARGS, "collection(phase, facts): called by Python."},
    {"write_to", (PyCFunction)write_to, METH_VARARGS, "write_to(memory, count_at, ring_at, capacity): of a record."},
    {"use_gpu", (PyCFunction)use_gpu, METH_VARARGS, "use_gpu(*calls): a GPU tells how long steps take."},
    {"fresh_event", (PyCFunction)fresh_event, METH_NOARGS, "fresh_event(): one that is not in use."},
    {"mark", (PyCFunction)mark_end, METH_VARARGS, "mark(number, event): a step that was written ended there."},
    {"restart", (PyCFunction)restart, METH_O, "restart(event): the current step begins there instead."},
    {"resolve", (PyCFunction)resolve_steps, METH_NOARGS, "resolve(): the number of a step that is to be judged; or -1."},
    {"pop", (PyCFunction)pop, METH_NOARGS, "pop(): the oldest pending step was judged."},
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
