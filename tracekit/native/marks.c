/* Which line of the user's runs: a mark whenever that changes, on any thread. `PlainMarks` does the same in Python.

   The interpreter calls `started`, `line`, `left`, `yielded` and `resumed` (sys.monitoring, Python 3.12 and later), or
   a function for tracing, which `trace` sets (earlier versions). */

#define Py_LIMITED_API 0x030B0000
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#if defined(__linux__) && defined(__LP64__)
#define HAS_TIMERS
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { NONE = -1, WHOLE = 0, ROOM = 256 };  /* WHOLE: the line that stands for all of a code object */
enum { UNKNOWN, MINE, OTHERS };
enum { WAITS = 0x80 | 0x100 | 0x200 };  /* CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR */
enum { SOON_NS = 20000, OFTEN_NS = 100000 };  /* until it is looked whether a hot loop is over, at first and later */
enum { ON_CALL = 0, ON_LINE = 2, ON_RETURN = 3 };  /* what a function for tracing is called for */

typedef struct {
    PyObject *code;  /* owned */
    int line, owner, waits, last;  /* of WHOLE: whose it is, whether it is a coroutine, and the place that it yielded at */
    int64_t step, since_ns, arrivals, off_step;  /* in which step its arrivals were counted, and it was switched off */
    int64_t has_hot_lines;  /* of WHOLE: in which step lines of it were switched off */
} Place;

typedef struct {
    PyObject *code;  /* borrowed from a place */
    int place;
} Frame;

typedef struct {
    unsigned long ident, native;  /* of the thread: what Python calls it, and the system */
    Frame *frames;
    int depth, room;
} Stack;

typedef struct {
    int64_t ns;
    int32_t place, thread, is_off, unused;
} Mark;

typedef struct {
    PyObject_HEAD
    PyObject *claims, *disable, *clock;
    int64_t most_arrivals, busy_ns, step;
    Place *places;
    int *slots;  /* a table with open addressing: the number of a place + 1 */
    int count, room;  /* of places */
    Stack *stacks;
    int threads;
    Mark *marks;
    Py_ssize_t marked, marks_room;
    int64_t seen_ns, asked_ns, wait_ns;  /* while tracing pauses: when the hot loop was last seen, and is to be again */
    int can_pause, is_paused, in_loop;  /* lines in a row that were reported no more */
    int timer;
} Marks;

static int64_t now(Marks *self) {
    if (self->clock != Py_None) {
        PyObject *told = PyObject_CallNoArgs(self->clock);
        int64_t ns = told ? PyLong_AsLongLong(told) : 0;
        Py_XDECREF(told);
        return ns;
    }
    struct timespec at;
    timespec_get(&at, TIME_UTC);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* Room for one more item; NULL with an error, and what there was stays. */
static void *with_room(void *items, Py_ssize_t count, Py_ssize_t *room, size_t size) {
    if (count < *room) return items;
    Py_ssize_t more = *room ? *room * 2 : ROOM;
    void *moved = realloc(items, (size_t)more * size);
    if (!moved) PyErr_NoMemory();
    else *room = more;
    return moved;
}

static int *slot_of(Marks *self, PyObject *code, int line) {
    size_t mask = (size_t)self->room * 2 - 1, at = (((size_t)code >> 4) * 31 + (size_t)line * 2654435761u) & mask;
    for (; self->slots[at]; at = (at + 1) & mask) {
        Place *place = &self->places[self->slots[at] - 1];
        if (place->code == code && place->line == line) break;
    }
    return &self->slots[at];
}

/* Twice as many places; -1 with an error. */
static int grow(Marks *self) {
    int room = self->room ? self->room * 2 : ROOM;
    Place *places = realloc(self->places, (size_t)room * sizeof *places);
    if (places) self->places = places;
    int *slots = calloc((size_t)room * 2, sizeof *slots);
    if (!places || !slots) {
        free(slots);
        PyErr_NoMemory();
        return -1;
    }
    free(self->slots);
    self->slots = slots, self->room = room;
    for (int number = 0; number < self->count; number++)
        *slot_of(self, places[number].code, places[number].line) = number + 1;
    return 0;
}

/* The number of a place; NONE with an error. */
static int place_of(Marks *self, PyObject *code, int line) {
    if (self->count == self->room && grow(self)) return NONE;
    int *slot = slot_of(self, code, line);
    if (!*slot) {
        Py_INCREF(code);
        self->places[self->count] = (Place){.code = code, .line = line, .waits = NONE, .last = NONE, .step = NONE,
                                            .off_step = NONE, .has_hot_lines = NONE};
        *slot = ++self->count;
    }
    return *slot - 1;
}

/* Whether code is the user's: 1, 0, or -1 with an error. */
static int is_mine(Marks *self, PyObject *code, int *number) {
    if ((*number = place_of(self, code, WHOLE)) == NONE) return -1;
    if (self->places[*number].owner == UNKNOWN) {
        PyObject *told = PyObject_CallFunctionObjArgs(self->claims, code, NULL);
        int mine = told ? PyObject_IsTrue(told) : -1;
        Py_XDECREF(told);
        if (mine < 0) return -1;
        self->places[*number].owner = mine ? MINE : OTHERS;
    }
    return self->places[*number].owner == MINE;
}

static Stack *stack_of_thread(Marks *self) {
    unsigned long ident = PyThread_get_thread_ident();
    for (int index = 0; index < self->threads; index++)
        if (self->stacks[index].ident == ident) return &self->stacks[index];
    Stack *stacks = realloc(self->stacks, (size_t)(self->threads + 1) * sizeof *stacks);
    if (!stacks) {
        PyErr_NoMemory();
        return NULL;
    }
    self->stacks = stacks;
    stacks[self->threads] = (Stack){.ident = ident, .native = PyThread_get_thread_native_id()};
    return &stacks[self->threads++];
}

static int mark(Marks *self, Stack *stack, int64_t ns, int is_off) {
    Mark *marks = with_room(self->marks, self->marked, &self->marks_room, sizeof *marks);
    if (!marks) return -1;
    self->marks = marks;
    int place = stack->depth ? stack->frames[stack->depth - 1].place : NONE;
    marks[self->marked++] = (Mark){ns, place, (int32_t)(stack - self->stacks), is_off, 0};
    return 0;
}

static int push(Stack *stack, PyObject *code, int place) {
    Py_ssize_t room = stack->room;
    Frame *frames = with_room(stack->frames, stack->depth, &room, sizeof *frames);
    if (!frames) return -1;
    stack->frames = frames, stack->room = (int)room;
    frames[stack->depth++] = (Frame){code, place};
    return 0;
}

/* The innermost frame of that code; NONE if there is none. */
static int find(Stack *stack, PyObject *code) {
    int at = stack->depth - 1;
    while (at >= 0 && stack->frames[at].code != code) at--;
    return at;
}

/* Counts an arrival at a place; whether it is to be reported no more, as one in a hot loop. */
static int is_hot(Marks *self, int number, int64_t ns) {
    Place *place = &self->places[number];
    if (place->step != self->step) place->step = self->step, place->since_ns = ns, place->arrivals = 0;
    if (++place->arrivals <= self->most_arrivals) return 0;
    if (ns - place->since_ns >= place->arrivals * self->busy_ns) {
        place->since_ns = ns, place->arrivals = 0;
        return 0;
    }
    place->off_step = self->step;
    return 1;
}

static int is_off(Marks *self, int number) { return self->places[number].off_step == self->step; }

/* A frame begins, or goes on where it yielded; 1 if that is to be reported no more, -1 with an error. Where it begins,
   its first line follows at once, unless that is reported no more. */
static int enter(Marks *self, PyObject *code, int place) {
    Stack *stack = stack_of_thread(self);
    int whole = stack ? place_of(self, code, WHOLE) : NONE;
    if (whole == NONE) return -1;
    int at = self->places[whole].waits > 0 ? find(stack, code) : NONE;
    if (at >= 0) {  /* a coroutine that stayed while it waited */
        for (; at + 1 < stack->depth; at++) stack->frames[at] = stack->frames[at + 1];
        stack->depth--;
    }
    int was_off = is_off(self, whole);
    int loops = was_off || self->places[whole].has_hot_lines == self->step;
    if (place == NONE) place = loops ? whole : self->places[whole].last;
    if (push(stack, code, place)) return -1;
    if (was_off) return 1;
    int64_t ns = now(self);
    int hot = is_hot(self, whole, ns);
    if (place == NONE && !hot) return 0;
    return mark(self, stack, ns, hot || loops) ? -1 : hot;
}

/* A frame reaches a line; 1 if that is to be reported no more, -1 with an error. */
static int reach(Marks *self, PyObject *code, int line) {
    Stack *stack = stack_of_thread(self);
    int number = stack ? place_of(self, code, line) : NONE, whole = stack ? place_of(self, code, WHOLE) : NONE;
    if (number == NONE || whole == NONE) return -1;
    int at = find(stack, code);
    if (at >= 0) stack->depth = at + 1;  /* what an exception has left is over */
    else if (push(stack, code, number)) return -1;
    stack->frames[stack->depth - 1].place = number;
    if (is_off(self, number)) return 1;
    int64_t ns = now(self);
    int hot = is_hot(self, number, ns);
    if (hot) self->places[whole].has_hot_lines = self->step;
    return mark(self, stack, ns, hot) ? -1 : hot;
}

/* A frame ends or yields; 1 if that is to be reported no more, -1 with an error. A coroutine that waits for others
   keeps its line until another one runs. */
static int leave(Marks *self, PyObject *code, int yields) {
    Stack *stack = stack_of_thread(self);
    int whole = stack ? place_of(self, code, WHOLE) : NONE;
    if (whole == NONE) return -1;
    int at = find(stack, code);
    if (at == NONE) return 0;
    Place *place = &self->places[whole];
    place->last = NONE;
    if (yields) {
        if (place->waits == NONE) {
            PyObject *flags = PyObject_GetAttrString(code, "co_flags");
            if (!flags) return -1;
            place->waits = (PyLong_AsLong(flags) & WAITS) != 0;
            Py_DECREF(flags);
        }
        place->last = stack->frames[at].place;
        if (place->waits > 0) return 0;
    }
    stack->depth = at;
    if (is_off(self, whole)) return 1;
    return mark(self, stack, now(self), 0) ? -1 : 0;
}

static PyObject *answer(PyObject *value) {
    Py_INCREF(value);
    return value;
}

static int has(Py_ssize_t count, Py_ssize_t wanted) {
    if (count >= wanted) return 1;
    PyErr_SetString(PyExc_TypeError, "the interpreter passes a code object first");
    return 0;
}

static PyObject *reported(Marks *self, int is_over) {
    return is_over < 0 ? NULL : answer(is_over ? self->disable : Py_None);
}

/* `started` and `resumed`: whose code it is decides whether it is reported again. */
static PyObject *begun(Marks *self, PyObject *const *args, Py_ssize_t count) {
    int number, mine = has(count, 1) ? is_mine(self, args[0], &number) : -1;
    if (mine < 0) return NULL;
    return reported(self, mine ? enter(self, args[0], NONE) : 1);
}

static PyObject *line(Marks *self, PyObject *const *args, Py_ssize_t count) {
    long number = has(count, 2) ? PyLong_AsLong(args[1]) : -1;
    return PyErr_Occurred() ? NULL : reported(self, reach(self, args[0], (int)number));
}

static PyObject *left(Marks *self, PyObject *const *args, Py_ssize_t count) {
    return has(count, 1) ? reported(self, leave(self, args[0], 0)) : NULL;
}

static PyObject *yielded(Marks *self, PyObject *const *args, Py_ssize_t count) {
    return has(count, 1) ? reported(self, leave(self, args[0], 1)) : NULL;
}

typedef int (*Traces)(PyObject *, PyFrameObject *, int, PyObject *);
extern void PyEval_SetTrace(Traces, PyObject *);  /* of CPython, though no part of the stable interface */

static int traced(PyObject *marks, PyFrameObject *frame, int what, PyObject *value);

/* Tracing slows a hot loop down several times, and lines cannot be switched off alone. So tracing pauses in it, and a
   timer's signal has the interpreter look, between two instructions, whether the loop is over. Where it looks late, code
   without instructions has run since it was asked to: the loop was over before. */
#ifdef HAS_TIMERS
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* By calls of the system: older C libraries have these functions in a library of their own. */
static void ask(Marks *self, int64_t wait_ns) {
    self->seen_ns = now(self), self->wait_ns = wait_ns, self->asked_ns = self->seen_ns + wait_ns;
    struct itimerspec once = {.it_value = {0, wait_ns}};
    syscall(SYS_timer_settime, self->timer, 0, &once, NULL);
}

/* Takes a timer that sends that signal to this thread, or gives it back where the signal is 0; -1 with an error. */
static int take_timer(Marks *self, int signal) {
    if (self->can_pause) syscall(SYS_timer_delete, self->timer);
    self->can_pause = self->is_paused = 0;
    if (!signal) return 0;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    self->can_pause = !syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &self->timer);
    return 0;
}
#else
static void ask(Marks *self, int64_t wait_ns) { (void)self, (void)wait_ns; }
static int take_timer(Marks *self, int signal) { (void)self, (void)signal; return 0; }
#endif

/* The place of the user's innermost frame that runs; NONE if there is none. */
static int place_now(Marks *self) {
    PyObject *frame = answer((PyObject *)PyEval_GetFrame());
    int place = NONE, number;
    while (frame && frame != Py_None && place == NONE) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        if (is_mine(self, code, &number) > 0) place = place_of(self, code, PyFrame_GetLineNumber((PyFrameObject *)frame));
        PyObject *back = PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(code), Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return place;
}

/* What the signal does: go on tracing if the loop is over. */
static PyObject *look(PyObject *marks, PyObject *Py_UNUSED(told)) {
    Marks *self = (Marks *)marks;
    int place = self->is_paused ? place_now(self) : NONE;
    if (PyErr_Occurred()) return NULL;
    if (!self->is_paused) return answer(Py_None);
    if (place != NONE && is_off(self, place)) {
        ask(self, self->wait_ns < OFTEN_NS ? 2 * self->wait_ns : self->wait_ns);
        return answer(Py_None);
    }
    self->is_paused = 0;
    Stack *stack = stack_of_thread(self);
    if (!stack) return NULL;
    int at = place == NONE ? NONE : find(stack, self->places[place].code);
    if (at >= 0) stack->depth = at + 1, stack->frames[at].place = place;
    else if (place != NONE && push(stack, self->places[place].code, place)) return NULL;
    if (place != NONE && mark(self, stack, (self->seen_ns + self->asked_ns) / 2, 0)) return NULL;
    PyEval_SetTrace(traced, marks);
    return answer(Py_None);
}

/* What the interpreter calls for tracing. A frame that yields returns, too, and is called again. */
static int traced(PyObject *marks, PyFrameObject *frame, int what, PyObject *value) {
    if (what != ON_CALL && what != ON_LINE && what != ON_RETURN) return 0;
    Marks *self = (Marks *)marks;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    int number, mine = is_mine(self, code, &number), told = mine < 0 ? -1 : 0;
    if (mine > 0 && what == ON_CALL) told = enter(self, code, place_of(self, code, PyFrame_GetLineNumber(frame)));
    if (mine > 0 && what == ON_LINE) told = reach(self, code, PyFrame_GetLineNumber(frame));
    if (mine > 0 && what == ON_RETURN) told = leave(self, code, value && self->places[number].waits != 0);
    Py_DECREF(code);
    if (mine > 0 && what == ON_LINE) self->in_loop = told > 0 ? self->in_loop + 1 : 0;
    if (self->can_pause && self->in_loop > self->most_arrivals) {
        PyEval_SetTrace(NULL, NULL);
        self->is_paused = 1, self->in_loop = 0;
        ask(self, SOON_NS);
    }
    return told < 0 ? -1 : 0;
}

/* `trace(on, signal)`: traces this thread; `look` is to handle the signal, or tracing does not pause where that is 0. */
static PyObject *trace(PyObject *marks, PyObject *args) {
    int is_on, signal;
    if (!PyArg_ParseTuple(args, "pi", &is_on, &signal)) return NULL;
    PyEval_SetTrace(is_on ? traced : NULL, is_on ? marks : NULL);
    return take_timer((Marks *)marks, is_on ? signal : 0) ? NULL : answer(Py_None);
}

/* `runs(code, line)`: a frame of this thread runs already; the outermost comes first. */
static PyObject *runs(Marks *self, PyObject *const *args, Py_ssize_t count) {
    long number = has(count, 2) ? PyLong_AsLong(args[1]) : -1;
    if (PyErr_Occurred()) return NULL;
    int place = place_of(self, args[0], (int)number);
    return place == NONE || enter(self, args[0], place) < 0 ? NULL : answer(Py_None);
}

/* A step begins: the codes of which lines were switched off in the last one. */
static PyObject *next_step(Marks *self, PyObject *Py_UNUSED(nothing)) {
    PyObject *codes = PyList_New(0);
    for (int number = 0; codes && number < self->count; number++) {
        Place *place = &self->places[number];
        int was_hot = place->has_hot_lines == self->step || is_off(self, number);
        if (place->line == WHOLE && was_hot && PyList_Append(codes, place->code)) Py_CLEAR(codes);
    }
    self->step++;
    return codes;
}

/* All marks, and the places, (code, line), to which they refer by number. */
static PyObject *taken(Marks *self, PyObject *Py_UNUSED(nothing)) {
    PyObject *places = PyList_New(0);
    for (int number = 0; places && number < self->count; number++) {
        PyObject *place = Py_BuildValue("(Oi)", self->places[number].code, self->places[number].line);
        if (!place || PyList_Append(places, place)) Py_CLEAR(places);
        Py_XDECREF(place);
    }
    PyObject *idents = PyList_New(0);
    for (int index = 0; idents && index < self->threads; index++) {
        PyObject *ident = PyLong_FromUnsignedLong(self->stacks[index].native);
        if (!ident || PyList_Append(idents, ident)) Py_CLEAR(idents);
        Py_XDECREF(ident);
    }
    if (!places || !idents) {
        Py_XDECREF(places);
        Py_XDECREF(idents);
        return NULL;
    }
    return Py_BuildValue("(y#NN)", (char *)self->marks, self->marked * (Py_ssize_t)sizeof(Mark), places, idents);
}

static int made(Marks *self, PyObject *args, PyObject *named) {
    static char *names[] = {"claims", "disable", "most_arrivals", "busy_ns", "clock", NULL};
    PyObject *claims, *disable, *clock = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OOLL|O", names, &claims, &disable, &self->most_arrivals,
                                     &self->busy_ns, &clock))
        return -1;
    self->claims = answer(claims), self->disable = answer(disable), self->clock = answer(clock);
    return grow(self);
}

static void freed(Marks *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    for (int number = 0; number < self->count; number++) Py_DECREF(self->places[number].code);
    for (int index = 0; index < self->threads; index++) free(self->stacks[index].frames);
    free(self->places), free(self->slots), free(self->stacks), free(self->marks);
    Py_XDECREF(self->claims), Py_XDECREF(self->disable), Py_XDECREF(self->clock);
    PyObject_Free(self);
    Py_DECREF(type);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef methods[] = {
    {"started", FAST(begun), METH_FASTCALL, NULL},
    {"resumed", FAST(begun), METH_FASTCALL, NULL},
    {"line", FAST(line), METH_FASTCALL, NULL},
    {"left", FAST(left), METH_FASTCALL, NULL},
    {"yielded", FAST(yielded), METH_FASTCALL, NULL},
    {"runs", FAST(runs), METH_FASTCALL, NULL},
    {"trace", trace, METH_VARARGS, NULL},
    {"look", look, METH_VARARGS, NULL},
    {"next_step", (PyCFunction)next_step, METH_NOARGS, NULL},
    {"taken", (PyCFunction)taken, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_methods, methods}, {Py_tp_init, made}, {Py_tp_new, PyType_GenericNew}, {Py_tp_dealloc, freed}, {0, NULL},
};
static PyType_Spec spec = {"tracekit.native._marks.Marks", sizeof(Marks), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_marks", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__marks(void) {
    PyObject *created = PyModule_Create(&module), *type = created ? PyType_FromSpec(&spec) : NULL;
    if (!type || PyModule_AddObject(created, "Marks", type)) {
        Py_XDECREF(type);
        Py_XDECREF(created);
        return NULL;
    }
    return created;
}
