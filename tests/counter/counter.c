/*
 * Counts every object the JVM makes, by class: the yardstick for the completeness of traces.
 *
 *   -agentpath:libcounter.so=counts.tsv[,stacks]
 *
 * JVMTI's SampledObjectAlloc with an interval of 0 reports each allocation, whoever made it: bytecode, compiled
 * code, native code, the VM itself. Load this agent before the runtime of Elephant Tracks. It counts what is made
 * while the hooks are on: from when HeapProxy says so until its VMDeath, which comes just before the runtime's.
 *
 * The file has one line a class, fields separated by tabs:
 *
 *   C descriptor objects bytes ours
 *
 * `ours` are objects made by the threads of the runtime itself; they are not among `objects`. With `stacks`, there
 * follow the innermost frames of the allocations that the trace missed, counted, to tell where they come from:
 *
 *   S descriptor objects frame;frame;...
 *
 * An object that the runtime has seen has an identity hash, since that is its id. So each object is looked at once
 * its thread has made some more, and by then any hook had its turn. That reads object headers as HotSpot has them (not
 * compact ones), and may take a moved object for a missed one if another thread collects just then: good enough to look
 * for causes, and not what `objects` are counted by.
 *
 * While it counts, nothing here draws an identity hash or allocates a Java object: that would change what is measured.
 */
#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 1 << 17, STACK_SLOTS = 1 << 18, DEPTH = 6, RECENT = 256 };

struct class_count {
    char *descriptor;
    atomic_llong objects, bytes, ours;
};

struct stack_count {
    jlong class_index; /* 0: free */
    jint depth;
    jmethodID frames[DEPTH];
    jlong objects;
};

/* An object that may yet be seen. */
struct recent {
    jobject object;
    struct stack_count made;
};

static struct class_count classes[MAX_CLASSES]; /* index 0 is not used: a tag of 0 is none */
static struct stack_count stacks[STACK_SLOTS];
static jlong class_total;
static jlong lost_stacks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { OFF, WAITING, COUNTING };
static atomic_int state;
static jclass heap_proxy;
static jfieldID on_field;
static int with_stacks;
static char *path;

static __thread int is_ours = -1;
static __thread long seen_by_thread;
static __thread int is_busy;
static __thread struct recent *recent; /* a ring; not freed: threads are few */
static __thread unsigned recent_next;
static __thread jvmtiFrameInfo frame_buffer[DEPTH];

static void failed(const char *what, int code) {
    fprintf(stderr, "object counter: %s failed with error %d\n", what, code);
    exit(3);
}

/* Whether the current thread is one of the runtime's own. */
static int thread_is_ours(jvmtiEnv *jvmti, JNIEnv *env, jthread thread) {
    if (is_ours < 0) {
        jvmtiThreadInfo info;
        memset(&info, 0, sizeof info);
        if ((*jvmti)->GetThreadInfo(jvmti, thread, &info) != JVMTI_ERROR_NONE) return 0; /* ask again */
        is_ours = info.name != NULL && strncmp(info.name, "elephant-tracks", 15) == 0;
        (*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
        if (info.thread_group != NULL) (*env)->DeleteLocalRef(env, info.thread_group);
        if (info.context_class_loader != NULL) (*env)->DeleteLocalRef(env, info.context_class_loader);
    }
    return is_ours;
}

/* The class's index, its tag. */
static jlong index_of(jvmtiEnv *jvmti, jclass class) {
    jlong index = 0;
    if ((*jvmti)->GetTag(jvmti, class, &index) == JVMTI_ERROR_NONE && index != 0) return index;
    pthread_mutex_lock(&lock);
    if ((*jvmti)->GetTag(jvmti, class, &index) == JVMTI_ERROR_NONE && index == 0) {
        char *signature = NULL;
        if (class_total + 1 >= MAX_CLASSES) failed("counting: too many classes, which", 0);
        (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL);
        index = ++class_total;
        classes[index].descriptor = strdup(signature != NULL ? signature : "?");
        (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
        jvmtiError error = (*jvmti)->SetTag(jvmti, class, index);
        if (error != JVMTI_ERROR_NONE) failed("SetTag", error);
    }
    pthread_mutex_unlock(&lock);
    return index;
}

static void count_stack(const struct stack_count *found) {
    unsigned long hash = (unsigned long)found->class_index;
    for (jint i = 0; i < found->depth; i++) {
        hash = (hash ^ (unsigned long)found->frames[i]) * 0x9e3779b97f4a7c15ul;
    }
    hash ^= hash >> 29;
    pthread_mutex_lock(&lock);
    int done = 0;
    for (int probe = 0; probe < 64 && !done; probe++) {
        struct stack_count *slot = &stacks[(hash + probe) % STACK_SLOTS];
        if (slot->class_index == 0) *slot = *found;
        if (slot->class_index == found->class_index && slot->depth == found->depth &&
            memcmp(slot->frames, found->frames, sizeof found->frames) == 0) {
            slot->objects++;
            done = 1;
        }
    }
    if (!done) lost_stacks++;
    pthread_mutex_unlock(&lock);
}

/* Whether an object has no identity hash. A handle is the address of the object's address, with tag bits. */
static int is_unhashed(jobject handle) {
    const unsigned long *object = *(const unsigned long **)((unsigned long)handle & ~3ul);
    unsigned long mark = object[0];
    /* Unlocked, and nothing but age bits: the hash is above them in every release. */
    return (mark & 3) == 1 && mark >> 11 == 0;
}

/* Remembers an object for later, and looks at the one whose place it takes. */
static void remember(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jlong class_index) {
    if (recent == NULL) recent = calloc(RECENT, sizeof *recent);
    if (recent == NULL) return;
    struct recent *place = &recent[recent_next++ % RECENT];
    if (place->object != NULL) {
        if (is_unhashed(place->object)) count_stack(&place->made);
        (*env)->DeleteGlobalRef(env, place->object);
    }
    memset(place, 0, sizeof *place);
    place->object = (*env)->NewGlobalRef(env, object);
    place->made.class_index = class_index;
    jvmtiError error = (*jvmti)->GetStackTrace(jvmti, thread, 0, DEPTH, frame_buffer, &place->made.depth);
    if (error != JVMTI_ERROR_NONE) place->made.depth = 0;
    for (jint i = 0; i < place->made.depth; i++) place->made.frames[i] = frame_buffer[i].method;
}

static void JNICALL allocated(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size) {
    seen_by_thread++;
    int now = atomic_load_explicit(&state, memory_order_relaxed);
    if (is_busy || now == OFF) return;
    if (now == WAITING) {
        if (!(*env)->GetStaticBooleanField(env, heap_proxy, on_field)) return;
        atomic_store(&state, COUNTING);
    }
    is_busy = 1;
    jlong index = index_of(jvmti, class);
    if (thread_is_ours(jvmti, env, thread)) {
        atomic_fetch_add_explicit(&classes[index].ours, 1, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(&classes[index].objects, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&classes[index].bytes, size, memory_order_relaxed);
        if (with_stacks) remember(jvmti, env, thread, object, index);
    }
    is_busy = 0;
}

/*
 * The main thread is older than the interval set by this agent: its first sample would come after half a megabyte or
 * so, and after the allocation buffer that it already has (JDK 17). Garbage until each allocation is seen.
 */
static void reach_first_sample(JNIEnv *env) {
    int in_a_row = 0;
    for (int i = 0; i < 1 << 16 && in_a_row < 8; i++) {
        long before = seen_by_thread;
        jbyteArray garbage = (*env)->NewByteArray(env, 4000);
        if (garbage != NULL) (*env)->DeleteLocalRef(env, garbage);
        in_a_row = seen_by_thread > before ? in_a_row + 1 : 0;
    }
    if (in_a_row < 8) fprintf(stderr, "object counter: the first objects of the main thread are not counted\n");
}

static void JNICALL vm_init(jvmtiEnv *jvmti, JNIEnv *env, jthread thread) {
    (void)jvmti, (void)thread;
    reach_first_sample(env);
    jclass proxy = (*env)->FindClass(env, "java/lang/HeapProxy");
    on_field = proxy == NULL ? NULL : (*env)->GetStaticFieldID(env, proxy, "on", "Z");
    (*env)->ExceptionClear(env);
    if (on_field == NULL) {
        atomic_store(&state, COUNTING); /* a plain JVM */
    } else {
        heap_proxy = (*env)->NewGlobalRef(env, proxy);
        atomic_store(&state, WAITING);
    }
}

/* `java.util.Arrays.copyOf`, in one piece whatever the method. */
static void print_frame(jvmtiEnv *jvmti, JNIEnv *env, FILE *out, jmethodID method) {
    char *name = NULL, *signature = NULL;
    jclass class = NULL;
    (*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL);
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) == JVMTI_ERROR_NONE) {
        (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL);
        (*env)->DeleteLocalRef(env, class);
    }
    fprintf(out, "%s.%s", signature != NULL ? signature : "?", name != NULL ? name : "?");
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

static void JNICALL vm_death(jvmtiEnv *jvmti, JNIEnv *env) {
    atomic_store(&state, OFF);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        exit(3);
    }
    pthread_mutex_lock(&lock);
    for (jlong i = 1; i <= class_total; i++) {
        fprintf(out, "C\t%s\t%lld\t%lld\t%lld\n", classes[i].descriptor, (long long)classes[i].objects,
                (long long)classes[i].bytes, (long long)classes[i].ours);
    }
    for (int i = 0; with_stacks && i < STACK_SLOTS; i++) {
        if (stacks[i].class_index == 0) continue;
        fprintf(out, "S\t%s\t%lld\t", classes[stacks[i].class_index].descriptor, (long long)stacks[i].objects);
        for (jint frame = 0; frame < stacks[i].depth; frame++) {
            if (frame > 0) fputc(';', out);
            print_frame(jvmti, env, out, stacks[i].frames[frame]);
        }
        fputc('\n', out);
    }
    if (lost_stacks > 0) fprintf(out, "S\t?\t%lld\tno room for these\n", (long long)lost_stacks);
    pthread_mutex_unlock(&lock);
    if (fclose(out) != 0) {
        perror(path);
        exit(3);
    }
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    jvmtiEnv *jvmti;
    jvmtiCapabilities capabilities;
    jvmtiEventCallbacks callbacks;
    jvmtiError error;

    if (options == NULL || *options == 0) {
        fprintf(stderr, "object counter: say where the counts go: -agentpath:...=counts.tsv\n");
        return JNI_ERR;
    }
    path = strdup(options);
    char *comma = strrchr(path, ',');
    if (comma != NULL && strcmp(comma, ",stacks") == 0) {
        with_stacks = 1;
        *comma = 0;
    }
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        fprintf(stderr, "object counter: this JVM has no JVMTI 11\n");
        return JNI_ERR;
    }
    memset(&capabilities, 0, sizeof capabilities);
    capabilities.can_tag_objects = 1;
    capabilities.can_generate_sampled_object_alloc_events = 1;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.SampledObjectAlloc = allocated;
    callbacks.VMInit = vm_init;
    callbacks.VMDeath = vm_death;
    if ((error = (*jvmti)->AddCapabilities(jvmti, &capabilities)) != JVMTI_ERROR_NONE) failed("AddCapabilities", error);
    if ((error = (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks)) != JVMTI_ERROR_NONE)
        failed("SetEventCallbacks", error);
    /* From the start, though nothing is counted before VMInit: threads keep the interval they were born with. */
    if ((error = (*jvmti)->SetHeapSamplingInterval(jvmti, 0)) != JVMTI_ERROR_NONE)
        failed("SetHeapSamplingInterval", error);
    jvmtiEvent events[] = {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC};
    for (int i = 0; i < 3; i++) {
        error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
        if (error != JVMTI_ERROR_NONE) failed("SetEventNotificationMode", error);
    }
    return JNI_OK;
}
