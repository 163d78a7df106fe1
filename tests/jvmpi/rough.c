/* Behaves as badly as its options say, and writes at the very end of the process what it did and what it was told. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

#include "jvmpi.h"
#include "options.h"

static JVMPI_Interface *vm;
static JVMPI_RawMonitor lock;
static char options[1024];
static JNIEnv *held;
static long counts[64], raised, dropped, thrown, files, early_files;
static int is_up, is_over, saw_object, holds;

#define HAS(name) (option(options, name) != NULL)

static void drop(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason;
    __sync_fetch_and_add(&dropped, 1);
    free(exception);
}

/* As `throw` does in C++. */
static void raise_one(void) {
    struct _Unwind_Exception *exception = NULL;
    if (posix_memalign((void **)&exception, 16, sizeof *exception)) abort();
    memset(exception, 0, sizeof *exception);
    memcpy(&exception->exception_class, "TESTTEST", 8);
    exception->exception_cleanup = drop;
    __sync_fetch_and_add(&raised, 1);
    _Unwind_RaiseException(exception);
    fprintf(stderr, "nobody takes an exception\n");
    abort();
}

static unsigned u2(const unsigned char *at) {
    return (unsigned)at[0] << 8 | at[1];
}

/* Where the name of the class stands: its length, and behind that the characters. */
static const unsigned char *name_of(const unsigned char *file) {
    static const unsigned char sizes[] = {0, 0, 0, 4, 4, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 3, 2, 4, 4, 2, 2};
    unsigned count = u2(file + 8), at;
    const unsigned char **entries = calloc(count + 1, sizeof *entries), *next = file + 10, *name;
    for (at = 1; at < count; at++) {
        unsigned tag = *next++;
        entries[at] = next;
        next += tag == 1 ? 2 + u2(next) : sizes[tag];
        if (tag == 5 || tag == 6) at++;
    }
    name = entries[u2(entries[u2(next + 2)])];
    free(entries);
    return name;
}

static int is_named(const unsigned char *file, const char *text) {
    const unsigned char *name = name_of(file);
    return u2(name) == strlen(text) && memcmp(name + 2, text, strlen(text)) == 0;
}

static void class_file(JVMPI_Event *event) {
    unsigned char *old = event->u.class_load_hook.class_data;
    jint length = event->u.class_load_hook.class_data_len;
    event->u.class_load_hook.new_class_data = old;
    event->u.class_load_hook.new_class_data_len = length;
    files++;
    if (!is_up) early_files++;
    if (!is_up && is_named(old, "java/lang/Object")) saw_object = 1;
    if (is_named(old, "Rough")) {
        unsigned char *new = event->u.class_load_hook.malloc_f((unsigned)length), *text;
        memcpy(new, old, (size_t)length);
        text = memmem(new, (size_t)length, "Rough-before", 12);
        if (text) memcpy(text, "Rough-after!", 12);
        event->u.class_load_hook.new_class_data = new;
        /* With a class file that is half made. */
        if (HAS("raise")) {
            memset(new + 4, 0xff, (size_t)length - 4);
            raise_one();
        }
    }
}

static void system_thread(void *nothing) {
    (void)nothing;
    raise_one();
}

static void notify(JVMPI_Event *event) {
    int type = event->event_type & ~JVMPI_REQUESTED_EVENT;
    long count = __sync_add_and_fetch(&counts[type], 1);
    switch (type) {
    case JVMPI_EVENT_CLASS_LOAD_HOOK:
        class_file(event);
        return;
    case JVMPI_EVENT_JVM_INIT_DONE:
        is_up = 1;
        if (HAS("system") && vm->CreateSystemThread("rough", JVMPI_NORMAL_PRIORITY, system_thread) != JNI_OK) abort();
        return;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        is_over = 1;
        return;
    case JVMPI_EVENT_THREAD_START:
        if (strcmp(event->u.thread_start.thread_name, "held") == 0) held = event->u.thread_start.thread_env_id;
        return;
    default:
        break;
    }
    if (!is_up || is_over) return;
    if (HAS("hold") && event->env_id == held && type == JVMPI_EVENT_OBJECT_ALLOC) {
        vm->RawMonitorEnter(lock);
        holds = 1;
        for (;;) pause();
    }
    if (HAS("java") && type == JVMPI_EVENT_OBJECT_ALLOC && count % 10 == 0) {
        JNIEnv *env = event->env_id;
        jclass class = (*env)->FindClass(env, "java/lang/IllegalStateException");
        if (class && (*env)->ThrowNew(env, class, "the agent's") == 0) __sync_fetch_and_add(&thrown, 1);
    }
    if (HAS("raise") && count % 3 == 0) raise_one();
}

/* After the VM has gone. */
static void finish(void) {
    FILE *file = fopen(option(options, "file"), "w");
    int number, answers = 1;
    JVMPI_CallFrame frames[4];
    JVMPI_CallTrace trace = {held, 4, frames};
    if (!file) return;
    answers &= is_over;
    answers &= vm->EnableEvent(JVMPI_EVENT_METHOD_ENTRY, NULL) == JVMPI_FAIL;
    answers &= vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) == JVMPI_FAIL;
    vm->GetCallTrace(&trace, 4);
    answers &= trace.num_frames == 0;
    vm->SuspendThread(held);
    vm->RunGC();
    vm->DisableGC();
    vm->EnableGC();
    answers &= vm->CreateSystemThread("late", JVMPI_NORMAL_PRIORITY, system_thread) == JNI_ERR;
    if (!holds) {
        vm->RawMonitorEnter(lock);
        vm->RawMonitorExit(lock);
    }
    fprintf(file, "complaints 0\nlate %d\nraised %ld\ndropped %ld\nthrown %ld\nholds %d\n", answers, raised, dropped, thrown, holds);
    fprintf(file, "files %ld\nearly %ld\nobject %d\n", files, early_files, saw_object);
    for (number = 0; number < 64; number++) fprintf(file, "event %d %ld\n", number, counts[number]);
    fclose(file);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *given, void *reserved) {
    (void)reserved;
    if ((*jvm)->GetEnv(jvm, (void **)&vm, JVMPI_VERSION_1_1) != JNI_OK) return JNI_ERR;
    snprintf(options, sizeof options, "%s", given ? given : "");
    if (HAS("load")) raise_one();
    vm->NotifyEvent = notify;
    lock = vm->RawMonitorCreate("rough");
    vm->EnableEvent(JVMPI_EVENT_JVM_INIT_DONE, NULL);
    vm->EnableEvent(JVMPI_EVENT_JVM_SHUT_DOWN, NULL);
    vm->EnableEvent(JVMPI_EVENT_THREAD_START, NULL);
    vm->EnableEvent(JVMPI_EVENT_GC_FINISH, NULL);
    if (HAS("alloc")) {
        vm->EnableEvent(JVMPI_EVENT_OBJECT_ALLOC, NULL);
        vm->EnableEvent(JVMPI_EVENT_OBJECT_FREE, NULL);
    }
    if (HAS("methods")) {
        vm->EnableEvent(JVMPI_EVENT_METHOD_ENTRY, NULL);
        vm->EnableEvent(JVMPI_EVENT_METHOD_EXIT, NULL);
    }
    if (HAS("files")) vm->EnableEvent(JVMPI_EVENT_CLASS_LOAD_HOOK, NULL);
    atexit(finish);
    return JNI_OK;
}
