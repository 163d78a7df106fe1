/* A heap profiler for JVMPI: what was made where, and what of it lives. See README.md. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jvmpi.h"

#define DEPTH 4
#define SITES 65536
#define SHOWN 20

/* A class, and the innermost frames of the thread that has made its objects. */
typedef struct {
    jobjectID class_id;
    jint kind, frames;
    JVMPI_CallFrame trace[DEPTH];
    long made, made_bytes, live, live_bytes;
} Site;

typedef struct Object {
    jobjectID id;
    Site *site;
    jint size;
    struct Object *next;
} Object;

/* Names of classes, and of methods with those of their classes. */
typedef struct Name {
    void *id;
    char *text;
    struct Name *next;
} Name;

static JVMPI_Interface *jvmpi;
static JVMPI_RawMonitor lock;
static Site sites[SITES];
static Object *objects[1 << 20];
static Name *names[1 << 16];
static const char *file_name = "heapprof.txt";

static size_t slot(const void *id, size_t room) {
    return (size_t)((uintptr_t)id * 0x9e3779b97f4a7c15ull >> 32) & (room - 1);
}

static const char *name_of(void *id) {
    Name *name;
    for (name = names[slot(id, 1 << 16)]; name; name = name->next)
        if (name->id == id) return name->text;
    return "?";
}

static void set_name(void *id, const char *class_name, const char *method_name) {
    Name **first = &names[slot(id, 1 << 16)], *name = malloc(sizeof *name);
    name->id = id;
    name->text = malloc(strlen(class_name) + strlen(method_name) + 2);
    sprintf(name->text, *method_name ? "%s.%s" : "%s%s", class_name, method_name);
    name->next = *first;
    *first = name;
}

static void class_load(JVMPI_Event *event) {
    jint at;
    set_name(event->u.class_load.class_id, event->u.class_load.class_name, "");
    for (at = 0; at < event->u.class_load.num_methods; at++)
        set_name(event->u.class_load.methods[at].method_id, event->u.class_load.class_name,
                 event->u.class_load.methods[at].method_name);
}

static Site *site_of(JVMPI_Event *event, JVMPI_CallTrace *trace) {
    jobjectID class_id = event->u.obj_alloc.class_id;
    jint kind = event->u.obj_alloc.is_array, at;
    size_t hash = slot(class_id, SITES) + (size_t)kind * 31, tries;
    for (at = 0; at < trace->num_frames; at++)
        hash = hash * 33 + slot(trace->frames[at].method_id, SITES) + (size_t)trace->frames[at].lineno;
    for (tries = 0; tries < SITES - 1; tries++, hash++) {
        Site *site = &sites[hash % (SITES - 1)];
        if (site->made == 0) {
            site->class_id = class_id;
            site->kind = kind;
            site->frames = trace->num_frames;
            for (at = 0; at < trace->num_frames; at++) site->trace[at] = trace->frames[at];
        }
        if (site->class_id != class_id || site->kind != kind || site->frames != trace->num_frames) continue;
        for (at = 0; at < site->frames; at++)
            if (site->trace[at].method_id != trace->frames[at].method_id || site->trace[at].lineno != trace->frames[at].lineno) break;
        if (at == site->frames) return site;
    }
    return &sites[SITES - 1];
}

static void object_alloc(JVMPI_Event *event) {
    JVMPI_CallFrame frames[DEPTH];
    JVMPI_CallTrace trace = {event->env_id, 0, frames};
    Object **first = &objects[slot(event->u.obj_alloc.obj_id, 1 << 20)], *object = malloc(sizeof *object);
    jvmpi->GetCallTrace(&trace, DEPTH);
    jvmpi->RawMonitorEnter(lock);
    object->id = event->u.obj_alloc.obj_id;
    object->size = event->u.obj_alloc.size;
    object->site = site_of(event, &trace);
    object->next = *first;
    *first = object;
    object->site->made++;
    object->site->live++;
    object->site->made_bytes += object->size;
    object->site->live_bytes += object->size;
    jvmpi->RawMonitorExit(lock);
}

static void object_free(jobjectID id) {
    Object **there = &objects[slot(id, 1 << 20)], *object;
    for (; (object = *there) != NULL; there = &object->next) {
        if (object->id != id) continue;
        object->site->live--;
        object->site->live_bytes -= object->size;
        *there = object->next;
        free(object);
        return;
    }
}

static int by_live_bytes(const void *one, const void *other) {
    long left = ((const Site *)one)->live_bytes, right = ((const Site *)other)->live_bytes;
    return left < right ? 1 : left > right ? -1 : 0;
}

static const char *kind_of(jint kind) {
    static const char *const kinds[] = {"", "", "[]", "", "boolean[]", "char[]", "float[]", "double[]",
                                        "byte[]", "short[]", "int[]", "long[]"};
    return kind >= 0 && kind < 12 ? kinds[kind] : "?";
}

static void report(void) {
    FILE *file = fopen(file_name, "w");
    jint at, frame;
    if (!file) return;
    qsort(sites, SITES - 1, sizeof *sites, by_live_bytes);
    for (at = 0; at < SHOWN && sites[at].made; at++) {
        Site *site = &sites[at];
        fprintf(file, "%s%s live %ld (%ld bytes) made %ld (%ld bytes)\n", site->class_id ? name_of(site->class_id) : "",
                kind_of(site->kind), site->live, site->live_bytes, site->made, site->made_bytes);
        for (frame = 0; frame < site->frames; frame++)
            fprintf(file, "    %s line %d\n", name_of(site->trace[frame].method_id), site->trace[frame].lineno);
    }
    fclose(file);
}

static void notify(JVMPI_Event *event) {
    switch (event->event_type) {
    case JVMPI_EVENT_CLASS_LOAD:
        jvmpi->RawMonitorEnter(lock);
        class_load(event);
        jvmpi->RawMonitorExit(lock);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
        object_alloc(event);
        break;
    case JVMPI_EVENT_GC_START: /* The lock is held until GC_FINISH: nothing may block between. */
        jvmpi->RawMonitorEnter(lock);
        break;
    case JVMPI_EVENT_OBJECT_FREE:
        object_free(event->u.obj_free.obj_id);
        break;
    case JVMPI_EVENT_GC_FINISH:
        jvmpi->RawMonitorExit(lock);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        jvmpi->RunGC();
        jvmpi->RawMonitorEnter(lock);
        report();
        jvmpi->RawMonitorExit(lock);
        break;
    }
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *vm, char *options, void *reserved) {
    static const jint events[] = {JVMPI_EVENT_CLASS_LOAD, JVMPI_EVENT_OBJECT_ALLOC, JVMPI_EVENT_OBJECT_FREE,
                                  JVMPI_EVENT_GC_START, JVMPI_EVENT_GC_FINISH, JVMPI_EVENT_JVM_SHUT_DOWN};
    size_t at;
    (void)reserved;
    if ((*vm)->GetEnv(vm, (void **)&jvmpi, JVMPI_VERSION_1) != JNI_OK) return JNI_ERR;
    if (options && *options) file_name = strdup(options);
    jvmpi->NotifyEvent = notify;
    lock = jvmpi->RawMonitorCreate("_heapprof");
    for (at = 0; at < sizeof events / sizeof *events; at++)
        if (jvmpi->EnableEvent(events[at], NULL) != JVMPI_SUCCESS) return JNI_ERR;
    return JNI_OK;
}
