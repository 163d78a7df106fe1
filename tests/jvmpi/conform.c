/* Checks that a host keeps the rules of the interface, and counts what it tells. At the end the file that the options name says so. */
#include <stdarg.h>
#include <unistd.h>

#include "table.h"

static JVMPI_Interface *vm;
static JVMPI_RawMonitor lock;
static char options[1024], out_name[1024];
static Table classes, methods, threads, objects, globals, arenas;
static long counts[64], requested[64], complaints;
static char said[20][300];
static JNIEnv *collecting;
static long dumps[3], monitor_dumps, object_dumps, traces, suspensions, branches, roots, records;
static int is_over, starting = 1;
/* Nothing is told any more but what is requested, and classes are not: what was not told is unknown. */
static int is_silent;
static struct {
    char name[64];
    long exits;
} leavers[32];
static jobjectID class_of_classes, newcomer;
static long sleeps;
static jlong longest_sleep, longest_slept;
static long moves, deleted_arenas, gone_with_arenas, early_files;

#define HAS(name) (option(options, name) != NULL)

typedef struct {
    jmethodID *methods;
    int depth, room;
} Stack;

typedef struct {
    char name[200];
    int interfaces, statics, instances;
    char *static_types, *instance_types;
    long allocated;
    /* Of an instance; 0 as long as none was seen, or if they differ. */
    jint size;
} Class;

/* What OBJECT_ALLOC says of an object. */
typedef struct {
    jint arena, is_array;
    jobjectID class_id;
    /* It was asked for, before or while it is told of by itself. */
    int is_asked;
} Object;

typedef struct {
    char name[300];
    long entries, exits;
    jobjectID class_id;
} Method;

static void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (complaints < 20) vsnprintf(said[complaints], sizeof said[0], format, arguments);
    complaints++;
    va_end(arguments);
}

static char *types(JVMPI_Field *fields, int count) {
    char *all = malloc((size_t)count + 1);
    int at;
    for (at = 0; at < count; at++) all[at] = fields[at].field_signature[0];
    all[count] = 0;
    return all;
}

static void class_load(JVMPI_Event *event, int is_requested) {
    jobjectID id = event->u.class_load.class_id;
    Class *class;
    int at;
    if (!id) return;
    if (find(&classes, (uintptr_t)id)) {
        if (!is_requested) complain("class %s is told of twice", event->u.class_load.class_name);
        return;
    }
    class = calloc(1, sizeof *class);
    snprintf(class->name, sizeof class->name, "%s", event->u.class_load.class_name);
    if (!event->u.class_load.source_name) complain("class %s has no source", class->name);
    class->interfaces = event->u.class_load.num_interfaces;
    class->statics = event->u.class_load.num_static_fields;
    class->instances = event->u.class_load.num_instance_fields;
    class->static_types = types(event->u.class_load.statics, class->statics);
    class->instance_types = types(event->u.class_load.instances, class->instances);
    *place(&classes, (uintptr_t)id) = class;
    if (strcmp(class->name, "java.lang.Class") == 0) class_of_classes = id;
    for (at = 0; at < event->u.class_load.num_methods; at++) {
        JVMPI_Method *method = &event->u.class_load.methods[at];
        Method *copy;
        if (find(&methods, (uintptr_t)method->method_id)) {
            complain("method %s.%s is told of twice", class->name, method->method_name);
            continue;
        }
        copy = calloc(1, sizeof *copy);
        snprintf(copy->name, sizeof copy->name, "%s.%s%s", class->name, method->method_name, method->method_signature);
        copy->class_id = id;
        *place(&methods, (uintptr_t)method->method_id) = copy;
    }
}

static Class *class_of(jobjectID id, const char *where) {
    void **there = find(&classes, (uintptr_t)id);
    if (!there && is_silent) {
        complain("%s: class %p was not told of in time", where, (void *)id);
        return NULL;
    }
    if (!there && vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, id) != JVMPI_SUCCESS) {
        complain("%s: class %p is unknown", where, (void *)id);
        return NULL;
    }
    there = find(&classes, (uintptr_t)id);
    return there ? *there : NULL;
}

static void check_trace(JVMPI_CallTrace *trace, const char *where) {
    int at;
    for (at = 0; at < trace->num_frames; at++) {
        if (!find(&methods, (uintptr_t)trace->frames[at].method_id))
            complain("%s: frame %d of %d has an unknown method", where, at, trace->num_frames);
    }
    traces++;
}

static void call_trace(JNIEnv *env, const char *where) {
    JVMPI_CallFrame frames[8];
    JVMPI_CallTrace trace;
    trace.env_id = env;
    trace.frames = frames;
    trace.num_frames = -1;
    vm->GetCallTrace(&trace, 8);
    if (trace.num_frames < 0 || trace.num_frames > 8) complain("%s: a trace of %d frames", where, trace.num_frames);
    else check_trace(&trace, where);
}

static Stack *stack_of(JNIEnv *env) {
    Stack *stack = vm->GetThreadLocalStorage(env);
    if (!stack) {
        stack = calloc(1, sizeof *stack);
        vm->SetThreadLocalStorage(env, stack);
    }
    return stack;
}

static void entered(JVMPI_Event *event, jmethodID id) {
    Stack *stack = stack_of(event->env_id);
    void **method = find(&methods, (uintptr_t)id);
    if (!method) complain("an unknown method is entered");
    else ((Method *)*method)->entries++;
    if (stack->depth == stack->room) {
        stack->room = stack->room ? stack->room * 2 : 64;
        stack->methods = realloc(stack->methods, sizeof *stack->methods * (size_t)stack->room);
    }
    stack->methods[stack->depth++] = id;
}

static void left(JVMPI_Event *event) {
    Stack *stack = stack_of(event->env_id);
    jmethodID id = event->u.method.method_id;
    void **method = find(&methods, (uintptr_t)id);
    if (method) ((Method *)*method)->exits++;
    if (stack->depth == 0) complain("a method is left that was not entered");
    else if (stack->methods[--stack->depth] != id) complain("another method is left than was entered last");
}

/* Dumps: a place to read from, with its end. */
typedef struct {
    char *at, *end;
    int is_broken;
} Reader;

static void skip(Reader *reader, size_t bytes) {
    if ((size_t)(reader->end - reader->at) < bytes) {
        reader->is_broken = 1;
        reader->at = reader->end;
    } else reader->at += bytes;
}

static unsigned long number(Reader *reader, int bytes) {
    unsigned long value = 0;
    if (reader->end - reader->at < bytes) {
        skip(reader, (size_t)bytes);
        return 0;
    }
    while (bytes-- > 0) value = value << 8 | (unsigned char)*reader->at++;
    return value;
}

static void *pointer(Reader *reader) {
    void *value = NULL;
    if ((size_t)(reader->end - reader->at) < sizeof value) skip(reader, sizeof value);
    else {
        memcpy(&value, reader->at, sizeof value);
        reader->at += sizeof value;
    }
    return value;
}

static size_t bytes_of(char type) {
    switch (type) {
    case 'Z': case 'B': return 1;
    case 'C': case 'S': return 2;
    case 'I': case 'F': return 4;
    default: return 8;
    }
}

static size_t of_kind(int kind) {
    switch (kind) {
    case JVMPI_BOOLEAN: case JVMPI_BYTE: return 1;
    case JVMPI_CHAR: case JVMPI_SHORT: return 2;
    case JVMPI_INT: case JVMPI_FLOAT: return 4;
    case JVMPI_LONG: case JVMPI_DOUBLE: return 8;
    default: complain("dump: kind %d of an array", kind); return 1;
    }
}

static size_t bytes_of_all(const char *all, int level) {
    size_t bytes = 0;
    for (; *all; all++)
        if (level == 2 || *all == 'L' || *all == '[') bytes += bytes_of(*all);
    return bytes;
}

/* One record of a dump. Superclasses are known by what is dumped of them. */
static Table supers;

/* An object is of the class that it was told of with. */
static void check_class(void *id, jint is_array, void *class_id) {
    void **there = find(&objects, (uintptr_t)id);
    Object *object = there ? *there : NULL;
    void **of_mirror = find(&classes, (uintptr_t)id);
    if (!object) return;
    if (object->is_array != is_array) complain("dump: %p is an array of type %d and was told as %d", id, is_array, object->is_array);
    else if (class_id && object->class_id != class_id && id != (void *)class_of_classes) {
        void **told = find(&classes, (uintptr_t)object->class_id), **now = find(&classes, (uintptr_t)class_id);
        complain("dump: object %p is of class %s (%p), and was told as of %s (%p)", id, now ? ((Class *)*now)->name : "?", class_id,
                 told ? ((Class *)*told)->name : "?", (void *)object->class_id);
    }
    if (of_mirror && is_array == JVMPI_NORMAL_OBJECT && class_id && class_id != (void *)class_of_classes)
        complain("dump: %p has the id of class %s", id, ((Class *)*of_mirror)->name);
}

static void record(Reader *reader, int level, Table *seen) {
    int type = (int)number(reader, 1);
    void *id = pointer(reader), *class_id;
    Class *class;
    unsigned long count;
    records++;
    if (type >= JVMPI_GC_CLASS_DUMP && type <= JVMPI_GC_PRIM_ARRAY_DUMP && seen) {
        void **there = place(seen, (uintptr_t)id);
        if (*there) complain("dump: %p is there twice, as %x and as %x", id, (int)(uintptr_t)*there, type);
        *there = (void *)(uintptr_t)type;
    }
    if (!id) complain("dump: a record (%x) without an object", type);
    switch (type) {
    case JVMPI_GC_ROOT_UNKNOWN: case JVMPI_GC_ROOT_STICKY_CLASS: case JVMPI_GC_ROOT_MONITOR_USED:
        roots++;
        break;
    case JVMPI_GC_ROOT_JNI_GLOBAL: case JVMPI_GC_ROOT_NATIVE_STACK: case JVMPI_GC_ROOT_THREAD_BLOCK:
        roots++;
        skip(reader, 8);
        break;
    case JVMPI_GC_ROOT_JNI_LOCAL: case JVMPI_GC_ROOT_JAVA_FRAME:
        roots++;
        skip(reader, 12);
        break;
    case JVMPI_GC_CLASS_DUMP:
        class = class_of(id, "dump of a class");
        *place(&supers, (uintptr_t)id) = pointer(reader);
        skip(reader, 5 * 8);
        count = number(reader, 4);
        if (class && class->size && count != (unsigned long)class->size)
            complain("dump: instances of %s have %ld bytes, not %ld", class->name, (long)class->size, (long)count);
        if (class && !count) complain("dump: instances of %s have no size", class->name);
        if (class) skip(reader, 8 * (size_t)class->interfaces);
        if (number(reader, 2) != 0) complain("dump: a constant pool");
        if (class) skip(reader, bytes_of_all(class->static_types, level));
        break;
    case JVMPI_GC_INSTANCE_DUMP:
        class_id = pointer(reader);
        check_class(id, JVMPI_NORMAL_OBJECT, class_id);
        class = class_of(class_id, "dump of an instance");
        count = number(reader, 4);
        if (class && count < bytes_of_all(class->instance_types, level))
            complain("dump: %lu bytes of a %s with fields %s", count, class->name, class->instance_types);
        skip(reader, count);
        break;
    case JVMPI_GC_OBJ_ARRAY_DUMP:
        count = number(reader, 4);
        class_id = pointer(reader);
        check_class(id, JVMPI_CLASS, class_id);
        /* Classes of arrays are told of on request only. */
        if (!is_silent) class_of(class_id, "dump of an array");
        skip(reader, 8 * count);
        break;
    case JVMPI_GC_PRIM_ARRAY_DUMP:
        count = number(reader, 4);
        type = (int)number(reader, 1);
        check_class(id, type, NULL);
        skip(reader, level == 2 ? of_kind(type) * count : 0);
        break;
    default:
        complain("dump: a record of type %x", type);
        reader->at = reader->end;
    }
}

/* A reference in a dump: to an object that has a record there, and that was told of or can be asked for: the VM makes some without a word. */
static void reference(Reader *reader, Table *seen, void *from, const char *what) {
    void *to = pointer(reader), **class;
    if (!to) return;
    class = find(&classes, (uintptr_t)to);
    if (!find(seen, (uintptr_t)to))
        complain("dump: %s of %p names %p (%s), which has no record", what, from, to, class ? ((Class *)*class)->name : "an object");
    else if (HAS("alloc") && !find(&objects, (uintptr_t)to) && vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, to) != JVMPI_SUCCESS)
        complain("dump: %s of %p names %p, which is unknown", what, from, to);
}

static void values(Reader *reader, int level, Table *seen, const char *all, void *from, const char *what) {
    for (; *all; all++) {
        if (*all == 'L' || *all == '[') reference(reader, seen, from, what);
        else if (level == 2) skip(reader, bytes_of(*all));
    }
}

/* The references of one record, once all records are known. */
static void references(Reader *reader, int level, Table *seen) {
    int type = (int)number(reader, 1), at;
    void *id = NULL, **there;
    unsigned long count;
    if (type != JVMPI_GC_CLASS_DUMP && (type < JVMPI_GC_INSTANCE_DUMP || type > JVMPI_GC_PRIM_ARRAY_DUMP)) {
        reference(reader, seen, NULL, "a root");
        if (type == JVMPI_GC_ROOT_JNI_LOCAL || type == JVMPI_GC_ROOT_JAVA_FRAME) skip(reader, 12);
        else if (type == JVMPI_GC_ROOT_JNI_GLOBAL || type == JVMPI_GC_ROOT_NATIVE_STACK || type == JVMPI_GC_ROOT_THREAD_BLOCK)
            skip(reader, 8);
        return;
    }
    id = pointer(reader);
    if (type == JVMPI_GC_CLASS_DUMP) {
        there = find(&classes, (uintptr_t)id);
        for (at = 0; at < 4; at++) reference(reader, seen, id, "a class");
        skip(reader, 2 * 8 + 4);
        for (at = 0; there && at < ((Class *)*there)->interfaces; at++) reference(reader, seen, id, "an interface");
        skip(reader, 2);
        if (there) values(reader, level, seen, ((Class *)*there)->static_types, id, ((Class *)*there)->name);
    } else if (type == JVMPI_GC_INSTANCE_DUMP) {
        void *class_id = pointer(reader);
        char *end;
        count = number(reader, 4);
        end = reader->at + count;
        for (at = 0; class_id && at < 1000 && (there = find(&classes, (uintptr_t)class_id)); at++) {
            void **super = find(&supers, (uintptr_t)class_id);
            values(reader, level, seen, ((Class *)*there)->instance_types, id, ((Class *)*there)->name);
            class_id = super ? *super : NULL;
        }
        if (reader->at != end) complain("dump: the fields of %p have %ld bytes more than its classes say", id, (long)(end - reader->at));
        reader->at = end;
    } else if (type == JVMPI_GC_OBJ_ARRAY_DUMP) {
        count = number(reader, 4);
        reference(reader, seen, id, "the class of an array");
        while (count-- > 0 && !reader->is_broken) reference(reader, seen, id, "an element");
    } else {
        count = number(reader, 4);
        type = (int)number(reader, 1);
        skip(reader, level == 2 ? of_kind(type) * count : 0);
    }
}

static void heap_dump(JVMPI_Event *event) {
    Reader reader = {event->u.heap_dump.begin, event->u.heap_dump.end, 0};
    int level = event->u.heap_dump.dump_level, at;
    Table seen = {0};
    dumps[level]++;
    /* What has died since the dump was made is told of before the agent looks at it. */
    if (HAS("dumpgc")) {
        vm->RawMonitorExit(lock);
        vm->RunGC();
        /* Others report deaths meanwhile, if they do not wait for this dump. */
        usleep(100000);
        vm->RawMonitorEnter(lock);
    }
    while (reader.at < reader.end) {
        if (level == 0) {
            number(&reader, 1);
            if (!pointer(&reader)) complain("dump: no object");
            records++;
        } else record(&reader, level, &seen);
    }
    if (reader.is_broken) complain("dump of level %d: the last record is cut", level);
    else if (level > 0) {
        reader.at = event->u.heap_dump.begin;
        while (reader.at < reader.end) references(&reader, level, &seen);
    }
    if (level == 0 && event->u.heap_dump.num_traces) complain("dump of level 0: traces");
    for (at = 0; at < event->u.heap_dump.num_traces; at++) check_trace(&event->u.heap_dump.traces[at], "dump");
    if (level == 2) {
        /* An object out of the dump, dumped again inside it. */
        for (at = 0; at < (int)seen.room && at < 4000; at++)
            if (seen.keys[at] > GONE && at % 97 == 0 &&
                vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, (void *)seen.keys[at]) != JVMPI_SUCCESS)
                complain("dump: object %p cannot be dumped", (void *)seen.keys[at]);
    }
    free(seen.keys);
    free(seen.values);
}

static void env_list(Reader *reader) {
    unsigned long count = number(reader, 4);
    while (count-- > 0 && !reader->is_broken) pointer(reader);
}

static void monitor_dump(JVMPI_Event *event) {
    Reader reader = {event->u.monitor_dump.begin, event->u.monitor_dump.end, 0};
    int at, status;
    void *owner;
    monitor_dumps++;
    while (reader.at < reader.end) {
        int type = (int)number(&reader, 1);
        if (type == JVMPI_MONITOR_JAVA) {
            if (!pointer(&reader)) complain("monitor dump: no object");
        } else if (type == JVMPI_MONITOR_RAW) {
            char *name = pointer(&reader);
            if (!name || strlen(name) > 100) complain("monitor dump: a name");
            pointer(&reader);
        } else {
            complain("monitor dump: type %x", type);
            return;
        }
        owner = pointer(&reader);
        if (!number(&reader, 4) && owner) complain("monitor dump: a monitor that is free has an owner");
        env_list(&reader);
        env_list(&reader);
    }
    if (reader.is_broken) complain("monitor dump: the last record is cut");
    for (at = 0; at < event->u.monitor_dump.num_traces; at++) {
        status = event->u.monitor_dump.threads_status[at] & 0xff;
        if (status < 1 || status > 3) complain("monitor dump: status %d", status);
        check_trace(&event->u.monitor_dump.traces[at], "monitor dump");
    }
}

static void check_thread(JVMPI_Event *event, int type) {
    if (type == JVMPI_EVENT_THREAD_START || type == JVMPI_EVENT_ARENA_NEW || type == JVMPI_EVENT_CLASS_LOAD || starting) return;
    if (!event->env_id) complain("event %d has no thread", type);
    else if (type == JVMPI_EVENT_OBJECT_ALLOC && !find(&threads, (uintptr_t)event->env_id)) {
        /* A thread that attaches itself makes its own object first. No other. */
        if (newcomer) complain("two objects of unknown threads");
        newcomer = event->u.obj_alloc.obj_id;
    }
    else if (!find(&threads, (uintptr_t)event->env_id)) complain("event %d on an unknown thread", type);
}

/* Keys of tables are no small numbers. */
#define ARENA(id) ((uintptr_t)(unsigned)(id) + 16)

static void check_arena(jint arena) {
    if (!find(&arenas, ARENA(arena))) complain("arena %d is unknown", arena);
}

static Object *object_of(JVMPI_Event *event) {
    Object *object = malloc(sizeof *object);
    object->arena = event->u.obj_alloc.arena_id;
    object->is_array = event->u.obj_alloc.is_array;
    object->class_id = event->u.obj_alloc.class_id;
    object->is_asked = (event->event_type & JVMPI_REQUESTED_EVENT) != 0;
    return object;
}

/* In whose name a monitor is left. */
static void monitor_left(JNIEnv *env) {
    void **name = find(&threads, (uintptr_t)env);
    size_t at;
    if (!name) return;
    for (at = 0; at < sizeof leavers / sizeof *leavers; at++)
        if (!leavers[at].exits || strcmp(leavers[at].name, *name) == 0) {
            snprintf(leavers[at].name, sizeof leavers[at].name, "%s", (char *)*name);
            leavers[at].exits++;
            return;
        }
}

/* As some agents do at the end: nothing is to be told any more, and then they ask. */
static void silence(void) {
    int type;
    for (type = 1; type <= JVMPI_MAX_EVENT_TYPE_VAL; type++) vm->DisableEvent(type, NULL);
    is_silent = 1;
}

static void last_dumps(void) {
    int level, left = 20;
    size_t at;
    for (level = 0; level <= 2; level++) {
        JVMPI_HeapDumpArg argument = {level};
        if (vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &argument) != JVMPI_SUCCESS) complain("no dump of level %d", level);
    }
    if (vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) != JVMPI_SUCCESS) complain("no dump of monitors");
    for (at = 0; at < classes.room && left > 0; at++)
        if (classes.keys[at] > GONE && ((Class *)classes.values[at])->size) {
            if (vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, (jobjectID)classes.keys[at]) != JVMPI_SUCCESS)
                /* Classes that die are told of later. */
                if (!HAS("dumpgc")) complain("no dump of class %s", ((Class *)classes.values[at])->name);
            left--;
        }
}

static void finish(void);

static void notify(JVMPI_Event *event) {
    int is_requested = (event->event_type & JVMPI_REQUESTED_EVENT) != 0;
    int type = event->event_type & ~JVMPI_REQUESTED_EVENT;
    void **there;
    Class *class;
    Object *object;
    if (type == JVMPI_EVENT_CLASS_LOAD_HOOK) {
        event->u.class_load_hook.new_class_data = event->u.class_load_hook.class_data;
        event->u.class_load_hook.new_class_data_len = event->u.class_load_hook.class_data_len;
    }
    vm->RawMonitorEnter(lock);
    if (is_over) {
        complain("event %d after the end", type);
        vm->RawMonitorExit(lock);
        return;
    }
    (is_requested ? requested : counts)[type]++;
    if (type == JVMPI_EVENT_CLASS_LOAD_HOOK && starting) early_files++;
    if (!is_requested) check_thread(event, type);
    if (collecting && !is_requested && type != JVMPI_EVENT_OBJECT_FREE && type != JVMPI_EVENT_GC_FINISH &&
        type != JVMPI_EVENT_OBJECT_MOVE && type != JVMPI_EVENT_ARENA_DELETE && type != JVMPI_EVENT_ARENA_NEW)
        complain("event %d inside a collection", type);
    if (collecting && collecting != event->env_id && !is_requested) complain("event %d on another thread than the collection", type);
    switch (type) {
    case JVMPI_EVENT_CLASS_LOAD:
        class_load(event, is_requested);
        break;
    case JVMPI_EVENT_CLASS_UNLOAD:
        if (!find(&classes, (uintptr_t)event->u.class_unload.class_id)) complain("an unknown class is unloaded");
        else {
            /* Its methods' ids may come again. */
            size_t at;
            for (at = 0; at < methods.room; at++)
                if (methods.keys[at] > GONE && ((Method *)methods.values[at])->class_id == event->u.class_unload.class_id)
                    take(&methods, methods.keys[at]);
            take(&classes, (uintptr_t)event->u.class_unload.class_id);
        }
        break;
    case JVMPI_EVENT_THREAD_START:
        if (!event->u.thread_start.thread_name || !event->u.thread_start.group_name || !event->u.thread_start.parent_name)
            complain("a thread without names");
        there = place(&threads, (uintptr_t)event->u.thread_start.thread_env_id);
        if (*there && !is_requested) complain("thread %s is told of twice", event->u.thread_start.thread_name);
        *there = strdup(event->u.thread_start.thread_name);
        if (newcomer && newcomer != event->u.thread_start.thread_id) complain("an object of an unknown thread");
        newcomer = NULL;
        if (HAS("alloc") && !find(&objects, (uintptr_t)event->u.thread_start.thread_id))
            complain("thread %s is no known object", event->u.thread_start.thread_name);
        break;
    case JVMPI_EVENT_THREAD_END:
        if (!take(&threads, (uintptr_t)event->env_id)) complain("an unknown thread ends");
        if (stack_of(event->env_id)->depth) complain("a thread ends in a method");
        vm->SetThreadLocalStorage(event->env_id, NULL);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
        check_arena(event->u.obj_alloc.arena_id);
        there = place(&objects, (uintptr_t)event->u.obj_alloc.obj_id);
        if (*there && !is_requested && !((Object *)*there)->is_asked)
            complain("object %p is made twice", (void *)event->u.obj_alloc.obj_id);
        *there = object_of(event);
        class = NULL;
        if (event->u.obj_alloc.class_id) {
            there = find(&classes, (uintptr_t)event->u.obj_alloc.class_id);
            if (!there) complain("an object of an unknown class");
            else class = *there;
        } else if (event->u.obj_alloc.is_array == JVMPI_NORMAL_OBJECT && event->u.obj_alloc.obj_id != class_of_classes)
            complain("an object without a class");
        if (class && event->u.obj_alloc.is_array == JVMPI_NORMAL_OBJECT) {
            class->allocated++;
            if (event->u.obj_alloc.class_id != class_of_classes) class->size = event->u.obj_alloc.size;
        }
        if (HAS("trace")) call_trace(event->env_id, "allocation");
        break;
    case JVMPI_EVENT_OBJECT_FREE:
        /* Who counts references has no collections. */
        if (!collecting && !HAS("counting")) complain("an object is freed outside collections");
        if (HAS("alloc") && !take(&objects, (uintptr_t)event->u.obj_free.obj_id)) complain("an unknown object is freed");
        break;
    case JVMPI_EVENT_OBJECT_MOVE: {
        jint from = event->u.obj_move.arena_id;
        if (!collecting) complain("an object is moved outside collections");
        check_arena(from);
        check_arena(event->u.obj_move.new_arena_id);
        there = find(&objects, (uintptr_t)event->u.obj_move.obj_id);
        if (!there) complain("an unknown object is moved");
        else if (((Object *)*there)->arena != from) complain("an object of arena %d is moved out of %d", ((Object *)*there)->arena, from);
        object = there ? *there : NULL;
        if (object) object->arena = event->u.obj_move.new_arena_id;
        take(&objects, (uintptr_t)event->u.obj_move.obj_id);
        there = place(&objects, (uintptr_t)event->u.obj_move.new_obj_id);
        if (*there) complain("an object is moved to where another is");
        *there = object;
        moves++;
        break;
    }
    case JVMPI_EVENT_ARENA_NEW:
        if (!event->u.new_arena.arena_name) complain("an arena without a name");
        there = place(&arenas, ARENA(event->u.new_arena.arena_id));
        if (*there) complain("arena %d is new twice", event->u.new_arena.arena_id);
        *there = event;
        break;
    case JVMPI_EVENT_ARENA_DELETE: {
        jint arena = event->u.delete_arena.arena_id;
        size_t at;
        if (!collecting) complain("arena %d is deleted outside collections", arena);
        if (!take(&arenas, ARENA(arena))) complain("an unknown arena is deleted");
        for (at = 0; at < objects.room; at++)
            if (objects.keys[at] > GONE && objects.values[at] && ((Object *)objects.values[at])->arena == arena) {
                take(&objects, objects.keys[at]);
                gone_with_arenas++;
            }
        deleted_arenas++;
        break;
    }
    case JVMPI_EVENT_GC_START:
        if (collecting) complain("two collections at once");
        collecting = event->env_id;
        vm->RawMonitorEnter(lock);
        break;
    case JVMPI_EVENT_GC_FINISH:
        if (!collecting) complain("a collection ends that has not begun");
        else vm->RawMonitorExit(lock);
        collecting = NULL;
        if (event->u.gc_info.used_object_space > event->u.gc_info.total_object_space) complain("more is used than there is");
        if (event->u.gc_info.used_object_space && event->u.gc_info.used_objects <= 0) complain("space is used by no objects");
        break;
    case JVMPI_EVENT_METHOD_ENTRY:
        if (!HAS("entry2")) entered(event, event->u.method.method_id);
        if (HAS("trace") && counts[type] % 1000 == 0) call_trace(event->env_id, "entry");
        break;
    case JVMPI_EVENT_METHOD_ENTRY2:
        entered(event, event->u.method_entry2.method_id);
        if (HAS("alloc") && event->u.method_entry2.obj_id && !find(&objects, (uintptr_t)event->u.method_entry2.obj_id))
            complain("a method of an unknown object");
        break;
    case JVMPI_EVENT_METHOD_EXIT:
        left(event);
        break;
    case JVMPI_EVENT_COMPILED_METHOD_LOAD:
        if (!find(&methods, (uintptr_t)event->u.compiled_method_load.method_id)) complain("an unknown method is compiled");
        break;
    case JVMPI_EVENT_INSTRUCTION_START:
        if (!find(&methods, (uintptr_t)event->u.instruction.method_id)) complain("an instruction of an unknown method");
        if (event->u.instruction.u.if_info.is_true) branches++;
        break;
    case JVMPI_EVENT_JNI_GLOBALREF_ALLOC: case JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC:
        *place(&globals, (uintptr_t)event->u.jni_globalref_alloc.ref_id) = event;
        if (HAS("alloc") && !find(&objects, (uintptr_t)event->u.jni_globalref_alloc.obj_id)) complain("a reference to an unknown object");
        break;
    case JVMPI_EVENT_JNI_GLOBALREF_FREE: case JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE:
        if (!take(&globals, (uintptr_t)event->u.jni_globalref_free.ref_id)) complain("an unknown reference is freed");
        break;
    case JVMPI_EVENT_MONITOR_WAIT: case JVMPI_EVENT_MONITOR_WAITED:
        if (HAS("alloc") && event->u.monitor_wait.object && !find(&objects, (uintptr_t)event->u.monitor_wait.object))
            complain("a wait on an unknown object");
        if (!event->u.monitor_wait.object) {
            jlong *longest = type == JVMPI_EVENT_MONITOR_WAIT ? &longest_sleep : &longest_slept;
            if (type == JVMPI_EVENT_MONITOR_WAIT) sleeps++;
            if (event->u.monitor_wait.timeout > *longest) *longest = event->u.monitor_wait.timeout;
        }
        break;
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTER: case JVMPI_EVENT_MONITOR_CONTENDED_ENTERED: case JVMPI_EVENT_MONITOR_CONTENDED_EXIT:
        if (HAS("alloc") && !find(&objects, (uintptr_t)event->u.monitor.object)) complain("a monitor of an unknown object");
        if (type == JVMPI_EVENT_MONITOR_CONTENDED_EXIT) monitor_left(event->env_id);
        break;
    case JVMPI_EVENT_HEAP_DUMP:
        heap_dump(event);
        break;
    case JVMPI_EVENT_OBJECT_DUMP: {
        Reader reader = {event->u.object_dump.data, event->u.object_dump.data + event->u.object_dump.data_len, 0};
        object_dumps++;
        record(&reader, 2, NULL);
        if (reader.is_broken || reader.at != reader.end) complain("a dump of an object has another length");
        break;
    }
    case JVMPI_EVENT_MONITOR_DUMP:
        monitor_dump(event);
        break;
    case JVMPI_EVENT_JVM_INIT_DONE:
        starting = 0;
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        if (HAS("silent")) silence();
        if (HAS("dump") || HAS("silent")) last_dumps();
        is_over = 1;
        finish();
        break;
    default:
        break;
    }
    vm->RawMonitorExit(lock);
}

/* Dumps, collections and samples while the program runs. */
static void busy(void *nothing) {
    JVMPI_RawMonitor pause = vm->RawMonitorCreate("_pause");
    int round;
    (void)nothing;
    for (round = 0; !is_over; round++) {
        vm->RawMonitorEnter(pause);
        vm->RawMonitorWait(pause, 20);
        vm->RawMonitorExit(pause);
        if (HAS("suspend")) {
            /* The lock first: no thread is suspended that has it. */
            JNIEnv *all[64];
            int count = 0, at;
            vm->RawMonitorEnter(lock);
            if (!is_over) {
                size_t slot;
                for (slot = 0; slot < threads.room && count < 64; slot++)
                    if (threads.keys[slot] > GONE) all[count++] = (JNIEnv *)threads.keys[slot];
                for (at = 0; at < count; at++) vm->SuspendThread(all[at]);
                for (at = 0; at < count; at++) {
                    int status = vm->GetThreadStatus(all[at]) & 0xff;
                    JVMPI_CallFrame frames[4];
                    JVMPI_CallTrace trace;
                    trace.env_id = all[at];
                    trace.frames = frames;
                    vm->GetCallTrace(&trace, 4);
                    vm->ThreadHasRun(all[at]);
                    if (status > 3) complain("status %d", status);
                }
                for (at = 0; at < count; at++) vm->ResumeThread(all[at]);
                suspensions++;
            }
            vm->RawMonitorExit(lock);
        }
        if (HAS("gc") && round % 8 == 0) vm->RunGC();
        if (HAS("dump") && round % 16 == 3) {
            JVMPI_HeapDumpArg argument = {round / 16 % 3};
            if (vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &argument) != JVMPI_SUCCESS && !is_over) complain("no dump");
        }
        if (HAS("dump") && round % 4 == 1) vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    }
}

static void after_start(JVMPI_Event *event) {
    notify(event);
    if (event->event_type == JVMPI_EVENT_JVM_INIT_DONE && HAS("exit")) vm->ProfilerExit(atoi(option(options, "exit")));
    if (event->event_type == JVMPI_EVENT_JVM_INIT_DONE && (HAS("gc") || HAS("dump") || HAS("suspend")) &&
        vm->CreateSystemThread("busy", JVMPI_NORMAL_PRIORITY, busy) != JNI_OK)
        complain("no system thread");
}

/* Classes that were told of and not as objects. */
static long lonely_classes(FILE *file) {
    long count = 0;
    size_t at;
    for (at = 0; at < classes.room; at++)
        if (HAS("alloc") && classes.keys[at] > GONE && !find(&objects, classes.keys[at])) {
            if (!count) fprintf(file, "no object %s\n", ((Class *)classes.values[at])->name);
            count++;
        }
    return count;
}

static void finish(void) {
    FILE *file = fopen(out_name, "w");
    size_t at;
    int number;
    if (!file) return;
    fprintf(file, "complaints %ld\n", complaints);
    for (at = 0; at < 20 && (long)at < complaints; at++) fprintf(file, "- %s\n", said[at]);
    for (number = 0; number < 64; number++)
        if (counts[number]) fprintf(file, "event %d %ld\n", number, counts[number]);
    for (number = 0; number < 64; number++)
        if (requested[number]) fprintf(file, "requested %d %ld\n", number, requested[number]);
    for (at = 0; at < classes.room; at++)
        if (classes.keys[at] > GONE && ((Class *)classes.values[at])->allocated)
            fprintf(file, "allocated %s %ld\n", ((Class *)classes.values[at])->name, ((Class *)classes.values[at])->allocated);
    for (at = 0; at < methods.room; at++) {
        Method *method = methods.keys[at] > GONE ? methods.values[at] : NULL;
        if (method && method->entries) fprintf(file, "method %s %ld %ld\n", method->name, method->entries, method->exits);
    }
    for (at = 0; at < sizeof leavers / sizeof *leavers && leavers[at].exits; at++)
        fprintf(file, "left by %s %ld\n", leavers[at].name, leavers[at].exits);
    fprintf(file, "moves %ld\narenas %ld deleted %ld gone %ld\nobjects %ld\n", moves, (long)arenas.live, deleted_arenas, gone_with_arenas,
            (long)objects.live);
    fprintf(file, "classes without objects %ld\n", lonely_classes(file));
    fprintf(file, "early files %ld\n", early_files);
    fprintf(file, "sleeps %ld longest %ld %ld\n", sleeps, (long)longest_sleep, (long)longest_slept);
    fprintf(file, "dumps %ld %ld %ld records %ld roots %ld\n", dumps[0], dumps[1], dumps[2], records, roots);
    fprintf(file, "monitor dumps %ld object dumps %ld traces %ld suspensions %ld branches %ld\n", monitor_dumps, object_dumps,
            traces, suspensions, branches);
    fclose(file);
}

static void enable(int type) {
    if (vm->EnableEvent(type, NULL) != JVMPI_SUCCESS) complain("event %d cannot be enabled", type);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *given, void *reserved) {
    int type;
    (void)reserved;
    if ((*jvm)->GetEnv(jvm, (void **)&vm, JVMPI_VERSION_1_1) != JNI_OK) return JNI_ERR;
    snprintf(options, sizeof options, "%s", given ? given : "");
    snprintf(out_name, sizeof out_name, "%s", option(options, "file") ? option(options, "file") : "conform.txt");
    vm->NotifyEvent = after_start;
    lock = vm->RawMonitorCreate("conform");
    for (type = JVMPI_EVENT_ARENA_NEW; type <= JVMPI_EVENT_ARENA_DELETE; type++) enable(type);
    enable(JVMPI_EVENT_CLASS_LOAD);
    enable(JVMPI_EVENT_CLASS_UNLOAD);
    if (HAS("files")) enable(JVMPI_EVENT_CLASS_LOAD_HOOK);
    enable(JVMPI_EVENT_THREAD_START);
    enable(JVMPI_EVENT_THREAD_END);
    enable(JVMPI_EVENT_JVM_INIT_DONE);
    enable(JVMPI_EVENT_JVM_SHUT_DOWN);
    enable(JVMPI_EVENT_GC_START);
    enable(JVMPI_EVENT_GC_FINISH);
    enable(JVMPI_EVENT_DATA_DUMP_REQUEST);
    enable(JVMPI_EVENT_DATA_RESET_REQUEST);
    if (HAS("alloc")) {
        enable(JVMPI_EVENT_OBJECT_ALLOC);
        enable(JVMPI_EVENT_OBJECT_FREE);
        enable(JVMPI_EVENT_OBJECT_MOVE);
    }
    if (HAS("methods")) {
        enable(HAS("entry2") ? JVMPI_EVENT_METHOD_ENTRY2 : JVMPI_EVENT_METHOD_ENTRY);
        enable(JVMPI_EVENT_METHOD_EXIT);
    }
    if (HAS("monitors"))
        for (type = JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER; type <= JVMPI_EVENT_MONITOR_WAITED; type++) enable(type);
    if (HAS("refs"))
        for (type = JVMPI_EVENT_JNI_GLOBALREF_ALLOC; type <= JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE; type++) enable(type);
    if (HAS("compiled")) {
        enable(JVMPI_EVENT_COMPILED_METHOD_LOAD);
        enable(JVMPI_EVENT_COMPILED_METHOD_UNLOAD);
    }
    if (HAS("steps")) enable(JVMPI_EVENT_INSTRUCTION_START);
    for (type = JVMPI_EVENT_HEAP_DUMP; type <= JVMPI_EVENT_MONITOR_DUMP; type++)
        if ((type == JVMPI_EVENT_HEAP_DUMP || type == JVMPI_EVENT_OBJECT_DUMP || type == JVMPI_EVENT_MONITOR_DUMP) &&
            vm->EnableEvent(type, NULL) != JVMPI_NOT_AVAILABLE)
            complain("dump %d can be enabled", type);
    if (vm->EnableEvent(1000, NULL) != JVMPI_NOT_AVAILABLE) complain("event 1000 can be enabled");
    return JNI_OK;
}
