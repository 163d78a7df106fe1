/*
 * Walks the stack at allocations, as a profiler by JVMTI does: the yardstick for the stacks of traces, and for what they cost.
 *
 *   -agentpath:libwalker.so                 walks each, and counts the stacks
 *   -agentpath:libwalker.so=stacks.tsv,N    and writes the stack of every Nth allocation of a thread
 *
 * JVMTI's SampledObjectAlloc with an interval of 0 reports each allocation, and GetStackTrace tells the stack. The file has a line for
 * each stack written, fields separated by tabs:
 *
 *   descriptor  frame;frame;...
 *
 * Frames are outermost first, as `class.method:line`; the line is 0 if it is not known, and -1 in native methods.
 */
#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 1024, SLOTS = 1 << 22 };

struct slot {
    _Atomic uint64_t stack; /* 0: free */
    atomic_llong objects, bytes;
};

static struct slot *slots;
static FILE *out;
static long every;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_llong full;

static __thread jvmtiFrameInfo *frames;
static __thread long seen;

static void failed(const char *what, int code) {
    fprintf(stderr, "stack walker: %s failed with error %d\n", what, code);
    exit(3);
}

static void count(uint64_t stack, jlong bytes) {
    for (uint64_t at = stack * 0x9e3779b97f4a7c15u >> 42, tries = 0; tries < SLOTS; at++, tries++) {
        struct slot *slot = &slots[at % SLOTS];
        uint64_t there = atomic_load_explicit(&slot->stack, memory_order_relaxed);
        if (there == 0 && atomic_compare_exchange_strong(&slot->stack, &there, stack)) there = stack;
        if (there == stack) {
            atomic_fetch_add_explicit(&slot->objects, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&slot->bytes, bytes, memory_order_relaxed);
            return;
        }
    }
    full++;
}

/* The line of a place in a method; the VM's own table is the only source. */
static int line_of(jvmtiEnv *jvmti, jmethodID method, jlocation at) {
    jvmtiLineNumberEntry *lines;
    jint entries, line = 0;
    if (at < 0) return -1;
    if ((*jvmti)->GetLineNumberTable(jvmti, method, &entries, &lines)) return 0;
    jlocation best = -1;
    for (jint i = 0; i < entries; i++) {
        if (lines[i].start_location <= at && lines[i].start_location > best) {
            best = lines[i].start_location;
            line = lines[i].line_number;
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)lines);
    return line;
}

static void write_frame(jvmtiEnv *jvmti, JNIEnv *env, const jvmtiFrameInfo *frame, int is_first) {
    jclass class;
    char *signature = NULL, *name = NULL;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, frame->method, &class)) return;
    if (!(*jvmti)->GetClassSignature(jvmti, class, &signature, NULL)
        && !(*jvmti)->GetMethodName(jvmti, frame->method, &name, NULL, NULL)) {
        size_t length = strlen(signature);
        for (size_t i = 0; i < length; i++)
            if (signature[i] == '/') signature[i] = '.';
        fprintf(out, "%s%.*s.%s:%d", is_first ? "" : ";", (int)length - 2, signature + 1, name,
                line_of(jvmti, frame->method, frame->location));
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*env)->DeleteLocalRef(env, class);
}

static void write_stack(jvmtiEnv *jvmti, JNIEnv *env, jclass class, jint depth) {
    char *descriptor;
    if ((*jvmti)->GetClassSignature(jvmti, class, &descriptor, NULL)) return;
    pthread_mutex_lock(&lock);
    fprintf(out, "%s\t", descriptor);
    for (jint i = depth; i-- > 0;) write_frame(jvmti, env, &frames[i], i == depth - 1);
    fputc('\n', out);
    pthread_mutex_unlock(&lock);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)descriptor);
}

static void JNICALL allocated(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size) {
    jint depth;
    (void)object;
    if (!frames && !(frames = malloc(DEPTH * sizeof *frames))) failed("malloc", 0);
    if ((*jvmti)->GetStackTrace(jvmti, thread, 0, DEPTH, frames, &depth)) return;
    uint64_t stack = 1;
    for (jint i = 0; i < depth; i++)
        stack = (stack ^ (uintptr_t)frames[i].method ^ (uint64_t)frames[i].location << 48) * 0x100000001b3u;
    count(stack ? stack : 1, size);
    /* A whole stack only: the outermost frames of a deeper one are missing. */
    if (out && depth > 0 && depth < DEPTH && ++seen % every == 0) write_stack(jvmti, env, class, depth);
}

static void JNICALL started(jvmtiEnv *jvmti, JNIEnv *env, jthread thread) {
    (void)env, (void)thread;
    int error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    if (error) failed("enabling SampledObjectAlloc", error);
}

static void JNICALL ended(jvmtiEnv *jvmti, JNIEnv *env) {
    (void)env;
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    long long stacks = 0, objects = 0;
    for (int i = 0; i < SLOTS; i++) {
        stacks += slots[i].stack != 0;
        objects += slots[i].objects;
    }
    /* A test compares what the program prints. */
    if (!out) fprintf(stderr, "stack walker: %lld objects on %lld stacks, %lld of others\n", objects, stacks, (long long)full);
    pthread_mutex_lock(&lock);
    if (out) fclose(out);
    out = NULL;
    pthread_mutex_unlock(&lock);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    jvmtiEnv *jvmti;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11)) failed("GetEnv", 0);
    if (!(slots = calloc(SLOTS, sizeof *slots))) failed("calloc", 0);
    char *comma = options ? strrchr(options, ',') : NULL;
    if (comma) {
        *comma = 0;
        every = atol(comma + 1);
        out = every > 0 ? fopen(options, "w") : NULL;
        if (!out) failed("opening the file of stacks", 0);
    }
    jvmtiCapabilities capabilities = {0};
    capabilities.can_generate_sampled_object_alloc_events = 1;
    capabilities.can_get_line_numbers = 1;
    int error = (*jvmti)->AddCapabilities(jvmti, &capabilities);
    if (error) failed("AddCapabilities", error);
    jvmtiEventCallbacks callbacks = {0};
    callbacks.SampledObjectAlloc = allocated;
    callbacks.VMInit = started;
    callbacks.VMDeath = ended;
    error = (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    if (!error) error = (*jvmti)->SetHeapSamplingInterval(jvmti, 0);
    if (!error) error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    if (!error) error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    if (error) failed("setting up events", error);
    return 0;
}
