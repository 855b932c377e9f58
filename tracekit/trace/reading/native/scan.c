// Scans a piece of a trace, events of JSON with commas between them, into columns: in one pass, without objects and
// without the interpreter's lock. It gives up on a piece in which anything is not plain, and the general decoder reads
// it instead, so that nothing about damage or leniency is known here. See README.md.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define DEPTH 64                    // of nested values; deeper ones are not plain
#define KEY_BYTES 2048              // of what identifies a track; a longer text is not plain
#define LIMIT_NS ((int64_t)1 << 61) // of times: sums of two still fit
#define WHOLE_DIGITS 16             // of microseconds, before the decimal point
#define INTEGER_DIGITS 18
#define NUMBER_BYTES 64             // of any other number: a longer one, or one with an exponent, may be out of range

typedef const unsigned char *Text;
typedef struct { Text start; size_t size; } Span;

// The integers among the arguments, in the order of the columns.
enum { CORRELATION, EXTERNAL_ID, EXTERNAL_ID_2021, STREAM, BYTES, SEQUENCE, FWD_THREAD, PYTHON_ID, PYTHON_PARENT_ID,
       INTEGERS };
// Why the typed decoder has to read an event besides.
enum { LABEL = 1, COMMUNICATION = 2, WAIT = 4, BANDWIDTH = 8 };

// Texts and their numbers, in the order in which they first occur.
typedef struct { uint64_t hash; size_t at; uint32_t size; } Entry;
typedef struct {
    uint32_t *slots;  // 1 + the number of a text, or 0
    uint32_t mask;
    Entry *entries;
    uint32_t count, told, room;  // `told` of them are known to the caller
    unsigned char *arena;
    size_t used, arena_room;
} Table;

enum { CATEGORIES, NAMES, TRACKS, TABLES };  // in the order of the columns
typedef struct { PyObject_HEAD Table tables[TABLES]; } Scanner;

// Where rows go: arrays of the caller's, with room for so many rows.
typedef struct {
    int64_t *ts, *dur;
    int32_t *codes[TABLES];
    int64_t *integers[INTEGERS];
    uint8_t *present[INTEGERS];
    size_t rows, room, events, negative;
    uint8_t any[INTEGERS];
    uint32_t *special;  // kind, start, end and row of events that the typed decoder has to read
    size_t specials, special_room;
} Out;

// ---- texts and their numbers

static uint64_t hash_of(Text text, size_t size) {
    uint64_t hash = 0x9E3779B97F4A7C15ull ^ size, word;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    if (size) {
        word = 0;
        memcpy(&word, text, size);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    hash *= 0xc4ceb9fe1a85ec53ull;
    return hash ^ hash >> 29;
}

static void place(Table *table, uint32_t number) {
    uint32_t slot = (uint32_t)table->entries[number].hash & table->mask;
    while (table->slots[slot]) slot = (slot + 1) & table->mask;
    table->slots[slot] = number + 1;
}

static int grow(Table *table) {
    uint32_t size = table->slots ? (table->mask + 1) * 2 : 1024;
    uint32_t *slots = calloc(size, sizeof *slots);
    Entry *entries = slots ? realloc(table->entries, size / 2 * sizeof *entries) : NULL;
    if (!entries) { free(slots); return -1; }
    free(table->slots);
    table->slots = slots, table->mask = size - 1, table->entries = entries, table->room = size / 2;
    for (uint32_t number = 0; number < table->count; number++) place(table, number);
    return 0;
}

static int32_t number_of(Table *table, Text text, size_t size) {
    if (table->count == table->room && grow(table)) return -1;
    uint64_t hash = hash_of(text, size);
    uint32_t slot = (uint32_t)hash & table->mask, number;
    for (; (number = table->slots[slot]); slot = (slot + 1) & table->mask) {
        Entry *entry = &table->entries[number - 1];
        if (entry->hash == hash && entry->size == size && !memcmp(table->arena + entry->at, text, size))
            return (int32_t)(number - 1);
    }
    if (!table->arena || table->used + size > table->arena_room) {
        size_t room = table->arena_room * 2 + size + 4096;
        unsigned char *arena = realloc(table->arena, room);
        if (!arena) return -1;
        table->arena = arena, table->arena_room = room;
    }
    if (size) memcpy(table->arena + table->used, text, size);
    table->entries[table->count] = (Entry){hash, table->used, (uint32_t)size};
    table->used += size;
    table->slots[slot] = table->count + 1;
    return (int32_t)table->count++;
}

// Forget the texts that the caller does not know.
static void forget(Table *table) {
    if (table->count == table->told) return;
    table->used = table->entries[table->told].at;
    table->count = table->told;
    memset(table->slots, 0, (table->mask + (size_t)1) * sizeof *table->slots);
    for (uint32_t number = 0; number < table->count; number++) place(table, number);
}

// ---- JSON. Each function returns what follows a token, or NULL if it is not plain. The byte at `end` can be read, and
// is no part of any token: whoever looks at one byte needs no check.

static inline Text space(Text at, Text end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
    return at;
}

static inline int is_digit(unsigned char c) { return (unsigned char)(c - '0') <= 9; }

static int is_hex(unsigned char c) { return is_digit(c) || (unsigned char)((c | 32) - 'a') <= 5; }

// Past an escape; halves of surrogate pairs are not plain.
static Text escape(Text at, Text end) {
    if (end - at < 2) return NULL;
    if (at[1] != 'u') return at[1] && strchr("\"\\/bfnrt", at[1]) ? at + 2 : NULL;
    if (end - at < 6 || !(is_hex(at[2]) && is_hex(at[3]) && is_hex(at[4]) && is_hex(at[5]))) return NULL;
    return (at[2] | 32) == 'd' && (at[3] == '8' || at[3] == '9' || (at[3] | 32) >= 'a') ? NULL : at + 6;
}

// The closing quote of the string that opens at `at`.
static inline Text closing_quote(Text at, Text end, int *escaped) {
    at++;
    for (;;) {
#ifdef __SSE2__
        while (end - at >= 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)at), control = _mm_set1_epi8(0x1f);
            __m128i found = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                         _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
            found = _mm_or_si128(found, _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
            int mask = _mm_movemask_epi8(found);
            if (mask) { at += __builtin_ctz((unsigned)mask); goto found; }
            at += 16;
        }
#endif
        while (at < end && *at != '"' && *at != '\\' && *at >= 0x20) at++;
        if (at >= end) return NULL;
#ifdef __SSE2__
    found:
#endif
        if (*at == '"') return at;
        if (*at < 0x20) return NULL;
        *escaped = 1;
        if (!(at = escape(at, end))) return NULL;
    }
}

// The key of an object that begins at `at`, and the value that follows it.
static inline Text key_and_value(Text at, Text end, Span *key, int *escaped) {
    if (at >= end || *at != '"') return NULL;
    Text start = at + 1;
    if (!(at = closing_quote(at, end, escaped))) return NULL;
    *key = (Span){start, (size_t)(at - start)};
    at = space(at + 1, end);
    if (at >= end || *at != ':') return NULL;
    at = space(at + 1, end);
    return at < end ? at : NULL;
}

// Past the comma after a value, or past what closes its object or list, which is the last byte then.
static inline Text next(Text at, Text end, unsigned char closes, int *last) {
    at = space(at, end);
    if (at >= end || (*at != ',' && *at != closes)) return NULL;
    *last = *at == closes;
    return *last ? at + 1 : space(at + 1, end);
}

static inline Text number(Text at) {
    if (*at == '-') at++;
    if (*at == '0') at++;
    else if (is_digit(*at)) while (is_digit(*at)) at++;
    else return NULL;
    if (*at == '.') {
        if (!is_digit(*++at)) return NULL;
        while (is_digit(*at)) at++;
    }
    if ((*at | 32) == 'e') {
        at++;
        if (*at == '+' || *at == '-') at++;
        if (!is_digit(*at)) return NULL;
        while (is_digit(*at)) at++;
    }
    return at;
}

static inline Text word(Text at, Text end, const char *text, size_t size) {
    return (size_t)(end - at) >= size && !memcmp(at, text, size) ? at + size : NULL;
}

static Text value(Text at, Text end, int depth) {
    int escaped;
    switch (*at) {
    case '"': return (at = closing_quote(at, end, &escaped)) ? at + 1 : NULL;
    case 't': return word(at, end, "true", 4);
    case 'f': return word(at, end, "false", 5);
    case 'n': return word(at, end, "null", 4);
    case '{': case '[': break;
    default: return number(at);
    }
    if (depth == DEPTH) return NULL;
    int object = *at == '{', last;
    unsigned char closes = object ? '}' : ']';
    Span key;
    at = space(at + 1, end);
    if (at < end && *at == closes) return at + 1;
    for (;;) {
        if (object && !(at = key_and_value(at, end, &key, &escaped))) return NULL;
        if (at >= end || !(at = value(at, end, depth + 1)) || !(at = next(at, end, closes, &last))) return NULL;
        if (last) return at;
    }
}

static int is_utf8(Text at, Text end) {
    while (at < end) {
        unsigned char c = *at;
        if (c < 0x80) { at++; continue; }
        int more = c >= 0xc2 && c <= 0xdf ? 1 : c >= 0xe0 && c <= 0xef ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 0;
        if (!more || end - at <= more) return 0;
        unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (at[1] < low || at[1] > high) return 0;
        for (int k = 2; k <= more; k++) if ((at[k] & 0xc0) != 0x80) return 0;
        at += more + 1;
    }
    return 1;
}

// A string, a number or null, as it is written.
static inline Text scalar(Text at, Text end, Span *span, int *escaped) {
    Text start = at;
    if (*at == '"') at = (at = closing_quote(at, end, escaped)) ? at + 1 : NULL;
    else if (*at == 'n') at = word(at, end, "null", 4);
    else if ((at = number(at)) && (at - start > NUMBER_BYTES || memchr(start, 'e', (size_t)(at - start))
                                   || memchr(start, 'E', (size_t)(at - start)))) return NULL;
    if (at) *span = (Span){start, (size_t)(at - start)};
    return at;
}

// The same of a field that is wanted: one that is there twice is not plain, for the first may be no text.
static inline Text field(Text at, Text end, Span *span, int *escaped) {
    return span->start ? NULL : scalar(at, end, span, escaped);
}

// Microseconds, in quotes or not, as nanoseconds: half to even, as exact.py rounds.
static inline Text nanoseconds(Text at, int64_t *ns) {
    int quoted = *at == '"';
    at += quoted;
    int negative = *at == '-', decimals = 0, dropped = 0, sticky = 0;
    at += negative;
    Text start = at;
    uint64_t digits = 0;
    while (is_digit(*at) && at - start <= WHOLE_DIGITS) digits = digits * 10 + (uint64_t)(*at++ - '0');
    if (at == start || at - start > WHOLE_DIGITS || (*start == '0' && at - start > 1)) return NULL;
    if (*at == '.') {
        start = ++at;
        for (; is_digit(*at); at++) {
            int digit = *at - '0';
            if (decimals < 3) digits = digits * 10 + (uint64_t)digit, decimals++;
            else if (at - start == 3) dropped = digit;
            else sticky |= digit;
        }
        if (at == start) return NULL;
        digits += dropped > 5 || (dropped == 5 && (sticky || digits & 1));
    }
    if ((*at | 32) == 'e' || (quoted && *at++ != '"')) return NULL;
    for (; decimals < 3; decimals++) digits *= 10;
    if (digits >= (uint64_t)LIMIT_NS) return NULL;
    *ns = negative ? -(int64_t)digits : (int64_t)digits;
    return at;
}

// A whole number, in quotes or not; `present` is 0 for null.
static inline Text integer(Text at, Text end, int64_t *result, uint8_t *present) {
    *present = 0;
    if (*at == 'n') return word(at, end, "null", 4);
    int quoted = *at == '"';
    at += quoted;
    int negative = *at == '-';
    at += negative;
    Text start = at;
    uint64_t digits = 0;  // of one digit more than may be, too
    while (is_digit(*at) && at - start <= INTEGER_DIGITS) digits = digits * 10 + (uint64_t)(*at++ - '0');
    if (at == start || at - start > INTEGER_DIGITS || (*start == '0' && (at - start > 1 || negative))) return NULL;
    if (*at == '.' || (*at | 32) == 'e' || (quoted && *at++ != '"')) return NULL;
    *result = negative ? -(int64_t)digits : (int64_t)digits;
    *present = 1;
    return at;
}

// ---- events

typedef struct {
    Span name, category, pid, tid, context;
    int64_t ts, dur, integers[INTEGERS];  // `ts` if it is `timed`, integers if they are `present`
    uint8_t present[INTEGERS];
    int phase, timed, has_arguments, special, texts;  // `texts`: whether strings that no table takes are UTF-8
} Event;

#define IS(text) (key.size == sizeof(text) - 1 && !memcmp(key.start, text, sizeof(text) - 1))

static int integer_of(Span key) {
    switch (key.size) {
    case 5: return IS("bytes") ? BYTES : -1;
    case 6: return IS("stream") ? STREAM : -1;
    case 9: return IS("Python id") ? PYTHON_ID : -1;
    case 11: return IS("correlation") ? CORRELATION : IS("External id") ? EXTERNAL_ID
                  : IS("external id") ? EXTERNAL_ID_2021 : -1;
    case 13: return IS("Fwd thread id") ? FWD_THREAD : -1;
    case 15: return IS("Sequence number") ? SEQUENCE : -1;
    case 16: return IS("Python parent id") ? PYTHON_PARENT_ID : -1;
    default: return -1;
    }
}

static Text arguments(Text at, Text end, Event *event) {
    at = space(at + 1, end);
    if (at < end && *at == '}') return at + 1;
    for (int last;;) {
        int escaped = 0, which;
        Span key, span;
        if (!(at = key_and_value(at, end, &key, &escaped)) || escaped) return NULL;
        if ((which = integer_of(key)) >= 0) {
            at = integer(at, end, &event->integers[which], &event->present[which]);
        } else if (IS("context")) {
            at = field(at, end, &event->context, &escaped);
        } else if (IS("name") || IS("memory bandwidth (GB/s)")) {
            if (key.size > 4) event->special |= BANDWIDTH;
            if (!(at = scalar(at, end, &span, &escaped))) return NULL;
            event->texts &= is_utf8(span.start, span.start + span.size);
        } else if (IS("original_stream")) return NULL;
        else {
            if (IS("Collective name")) event->special |= COMMUNICATION;
            else if (IS("wait_on_stream") || IS("wait_on_cuda_event_record_corr_id")) event->special |= WAIT;
            at = value(at, end, 0);
        }
        if (!at || !(at = next(at, end, '}', &last))) return NULL;
        if (last) return at;
    }
}

static Text read_event(Text at, Text end, Event *event) {
    event->name = event->category = event->pid = event->tid = event->context = (Span){0};
    event->dur = 0;
    memset(event->present, 0, sizeof event->present);
    event->phase = event->timed = event->has_arguments = event->special = 0;
    event->texts = 1;
    if (*at != '{') return NULL;
    at = space(at + 1, end);
    if (at < end && *at == '}') return at + 1;
    for (int last;;) {
        int escaped = 0;
        Span key;
        if (!(at = key_and_value(at, end, &key, &escaped)) || escaped) return NULL;
        Text start = at;
        switch (key.size) {
        case 2:
            if (IS("ph")) {
                if (end - at < 3 || at[0] != '"' || at[1] < '#' || at[1] > 'z' || at[1] == '\\' || at[2] != '"') return NULL;
                event->phase = at[1], at += 3;
            } else if (IS("ts")) {
                event->timed = (at = nanoseconds(start, &event->ts)) != NULL;
                if (!at) at = value(start, end, 0);
            } else at = value(at, end, 0);
            break;
        case 3:
            if (IS("dur")) {
                if (*at == 'n') event->dur = 0, at = word(at, end, "null", 4);
                else at = nanoseconds(at, &event->dur);
            } else if (IS("cat")) {
                at = field(at, end, &event->category, &escaped);
                if (*start == 'n') event->category = (Span){0};
            }
            else if (IS("pid")) at = field(at, end, &event->pid, &escaped);
            else if (IS("tid")) at = field(at, end, &event->tid, &escaped);
            else at = value(at, end, 0);
            break;
        case 4:
            if (IS("name")) at = field(at, end, &event->name, &escaped);
            else if (IS("args")) at = *at == '{' && !event->has_arguments++ ? arguments(at, end, event) : NULL;
            else at = value(at, end, 0);
            break;
        default: at = value(at, end, 0);
        }
        if (!at || !(at = next(at, end, '}', &last))) return NULL;
        if (last) return at;
    }
}

static int is_of_backend(Span name) {
    static const char *const prefixes[] = {"nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:"};
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
        if (name.size > strlen(prefixes[k]) && !memcmp(name.start + 1, prefixes[k], strlen(prefixes[k]))) return 1;
    return 0;
}

static int32_t track_of(Table *table, const Event *event) {
    unsigned char key[KEY_BYTES];
    size_t size = 0;
    const Span parts[] = {event->pid, event->tid, event->context, {(Text) "-", event->category.start ? 0 : 1}};
    for (int k = 0; k < 4; k++) {
        if (size + parts[k].size + 1 > sizeof key) return -1;
        for (size_t byte = 0; byte < parts[k].size; byte++) key[size++] = parts[k].start[byte];  // few
        key[size++] = '\n';
    }
    return number_of(table, key, size);
}

static int32_t category_of(Table *table, const Event *event) {
    if (event->category.start) return number_of(table, event->category.start, event->category.size);
    unsigned char key[KEY_BYTES];  // files of 2019 have none: the process shows what an event is
    if (event->pid.size + 1 > sizeof key) return -1;
    key[0] = '\n';
    memcpy(key + 1, event->pid.start, event->pid.size);
    return number_of(table, key, event->pid.size + 1);
}

static int add_special(Out *out, int kind, size_t start, size_t end) {
    if (out->specials + 4 > out->special_room) {
        size_t room = out->special_room * 2 + 256;
        uint32_t *special = realloc(out->special, room * sizeof *special);
        if (!special) return -1;
        out->special = special, out->special_room = room;
    }
    uint32_t fields[] = {(uint32_t)kind, (uint32_t)start, (uint32_t)end, (uint32_t)out->rows};
    memcpy(out->special + out->specials, fields, sizeof fields);
    out->specials += 4;
    return 0;
}

static int add_row(Scanner *self, Event *event, Out *out) {
    if (!event->timed || !event->name.start || *event->name.start != '"' || !event->pid.start || !event->tid.start) return -1;
    if (out->rows == out->room) return -1;
    size_t row = out->rows;
    if (event->dur < 0) event->dur = 0, out->negative++;
    out->ts[row] = event->ts, out->dur[row] = event->dur;
    int32_t codes[TABLES] = {
        [NAMES] = number_of(&self->tables[NAMES], event->name.start + 1, event->name.size - 2),
        [CATEGORIES] = category_of(&self->tables[CATEGORIES], event),
        [TRACKS] = track_of(&self->tables[TRACKS], event),
    };
    for (int k = 0; k < TABLES; k++) {
        if (codes[k] < 0) return -1;
        out->codes[k][row] = codes[k];
    }
    for (int k = 0; k < INTEGERS; k++) {
        out->integers[k][row] = event->present[k] ? event->integers[k] : 0;
        out->present[k][row] = event->present[k];
        out->any[k] |= event->present[k];
    }
    out->rows++;
    return 0;
}

static int is_text(Span span) { return !span.start || is_utf8(span.start, span.start + span.size); }

// 0 if all of the piece is plain, else −1.
static int scan(Scanner *self, Text text, Text at, Text end, Out *out) {
    Event event;
    for (at = space(at, end); at < end;) {
        Text start = at;
        if (!(at = read_event(at, end, &event)) || !event.texts) return -1;
        out->events++;
        int special = event.special;
        if (event.phase != 'X') {
            if (!is_text(event.name) || !is_text(event.category) || !is_text(event.pid) || !is_text(event.tid)
                || !is_text(event.context)) return -1;
            special = event.phase == 'M' ? LABEL : 0;
        } else if (event.name.start && is_of_backend(event.name)) special |= COMMUNICATION;
        if (special && add_special(out, special, (size_t)(start - text), (size_t)(at - text))) return -1;
        if (event.phase == 'X' && add_row(self, &event, out)) return -1;
        at = space(at, end);
        if (at == end) return 0;
        if (*at != ',') return -1;
        at = space(at + 1, end);
        if (at == end) return -1;
    }
    return -1;  // nothing is there
}

// ---- for Python

static PyObject *new_texts(Table *table) {
    PyObject *list = PyList_New(table->count - table->told);
    for (uint32_t number = table->told; list && number < table->count; number++) {
        Entry *entry = &table->entries[number];
        PyObject *text = PyBytes_FromStringAndSize((char *)table->arena + entry->at, entry->size);
        if (!text || PyList_SetItem(list, number - table->told, text)) { Py_DECREF(list); return NULL; }
    }
    return list;
}

static void forget_all(Scanner *self) {
    for (int k = 0; k < TABLES; k++) forget(&self->tables[k]);
}

PyDoc_STRVAR(scan_doc,
"scan(chunk, start, end, columns, row) -> (events, rows, negative, any, special, categories, names, tracks) or None\n\n"
"Scan the events in chunk[start:end] into arrays, from that row on; None if something in them is not plain. The arrays:\n"
"starts, durations, categories, names, tracks, the integers, and whether each of these is there. Returned are how many\n"
"events and rows there are now, how many durations are negative, which integers occur, the events that the typed decoder\n"
"has to read besides (kind, start, end and row of each), and the texts that are new, as they are written.");

static PyObject *Scanner_scan(PyObject *object, PyObject *args) {
    Scanner *self = (Scanner *)object;
    PyObject *chunk, *columns, *result = NULL;
    Py_ssize_t start, end, row;
    if (!PyArg_ParseTuple(args, "OnnOn", &chunk, &start, &end, &columns, &row)) return NULL;
    enum { ARRAYS = 2 + TABLES + 2 * INTEGERS };
    Py_buffer view, arrays[ARRAYS];
    int held = 0;
    if (PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)) return NULL;
    Out out = {.rows = (size_t)row, .room = SIZE_MAX};
    if (!PyList_Check(columns) || PyList_Size(columns) != ARRAYS || start < 0 || end < start || end >= view.len || row < 0
        || view.len > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "no such piece, or not as many columns");
        goto done;
    }
    for (; held < ARRAYS; held++) {
        if (PyObject_GetBuffer(PyList_GetItem(columns, held), &arrays[held], PyBUF_WRITABLE)) goto done;
        void *data = arrays[held].buf;
        size_t width = held < 2 ? 8 : held < 2 + TABLES ? 4 : held < 2 + TABLES + INTEGERS ? 8 : 1;
        size_t room = (size_t)arrays[held].len / width;
        if (room < out.room) out.room = room;
        if (held == 0) out.ts = data;
        else if (held == 1) out.dur = data;
        else if (held < 2 + TABLES) out.codes[held - 2] = data;
        else if (held < 2 + TABLES + INTEGERS) out.integers[held - 2 - TABLES] = data;
        else out.present[held - 2 - TABLES - INTEGERS] = data;
    }
    int plain = 0;
    Text text = view.buf;
    if (text[end] == ',' || text[end] == ']' || space(text + end, text + end + 1) > text + end) {
        Py_BEGIN_ALLOW_THREADS
        plain = out.rows <= out.room && !scan(self, text, text + start, text + end, &out);
        Py_END_ALLOW_THREADS
    }
    if (!plain) {
        forget_all(self);
        Py_INCREF(Py_None);
        result = Py_None;
        goto done;
    }
    result = Py_BuildValue("(nnny#y#NNN)", (Py_ssize_t)out.events, (Py_ssize_t)out.rows, (Py_ssize_t)out.negative,
                           (char *)out.any, (Py_ssize_t)INTEGERS, out.special ? (char *)out.special : "",
                           (Py_ssize_t)(out.specials * sizeof *out.special), new_texts(&self->tables[CATEGORIES]),
                           new_texts(&self->tables[NAMES]), new_texts(&self->tables[TRACKS]));
done:
    free(out.special);
    while (held) PyBuffer_Release(&arrays[--held]);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *Scanner_keep(PyObject *object, PyObject *Py_UNUSED(none)) {
    Scanner *self = (Scanner *)object;
    for (int k = 0; k < TABLES; k++) self->tables[k].told = self->tables[k].count;
    Py_RETURN_NONE;
}

static PyObject *Scanner_forget(PyObject *object, PyObject *Py_UNUSED(none)) {
    forget_all((Scanner *)object);
    Py_RETURN_NONE;
}

static void Scanner_dealloc(PyObject *object) {
    Scanner *self = (Scanner *)object;
    for (int k = 0; k < TABLES; k++) {
        free(self->tables[k].slots);
        free(self->tables[k].entries);
        free(self->tables[k].arena);
    }
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"scan", Scanner_scan, METH_VARARGS, scan_doc},
    {"keep", Scanner_keep, METH_NOARGS, "The texts that the last scan returned are known now."},
    {"forget", Scanner_forget, METH_NOARGS, "Forget the texts that the last scan returned."},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Scans pieces of JSON, and numbers the names, categories and tracks in them."},
    {Py_tp_methods, methods},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, Scanner_dealloc},
    {0},
};
static PyType_Spec spec = {"tracekit.trace.reading.native._scan.Scanner", sizeof(Scanner), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_scan", "Scans events of JSON into columns.", -1};

PyMODINIT_FUNC PyInit__scan(void) {
    PyObject *made = PyModule_Create(&module), *type = made ? PyType_FromSpec(&spec) : NULL;
    if (type && !PyModule_AddObject(made, "Scanner", type)) return made;
    Py_XDECREF(type);
    Py_XDECREF(made);
    return NULL;
}
