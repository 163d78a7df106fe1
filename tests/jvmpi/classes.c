/* Asks JNI of the class of each object that a program hands it, and compares with what it was told of that object. */
#include "table.h"

static JVMPI_Interface *vm;
static JVMPI_RawMonitor lock;
static char out_name[1024];
static Table names, objects;
static long complaints, checked;
static char said[20][300];

typedef struct {
    jint is_array;
    jobjectID class_id;
} Object;

static void notify(JVMPI_Event *event) {
    Object *object;
    FILE *file;
    int at;
    vm->RawMonitorEnter(lock);
    switch (event->event_type & ~JVMPI_REQUESTED_EVENT) {
    case JVMPI_EVENT_CLASS_LOAD:
        if (event->u.class_load.class_id)
            *place(&names, (uintptr_t)event->u.class_load.class_id) = strdup(event->u.class_load.class_name);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
        object = malloc(sizeof *object);
        object->is_array = event->u.obj_alloc.is_array;
        object->class_id = event->u.obj_alloc.class_id;
        *place(&objects, (uintptr_t)event->u.obj_alloc.obj_id) = object;
        break;
    case JVMPI_EVENT_OBJECT_FREE:
        take(&objects, (uintptr_t)event->u.obj_free.obj_id);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        file = fopen(out_name, "w");
        if (!file) break;
        fprintf(file, "complaints %ld\n", complaints);
        for (at = 0; at < 20 && at < complaints; at++) fprintf(file, "- %s\n", said[at]);
        fprintf(file, "checked %ld\n", checked);
        fclose(file);
        break;
    default:
        break;
    }
    vm->RawMonitorExit(lock);
}

static const char *name_of_class(jobjectID id) {
    void **name = find(&names, (uintptr_t)id);
    if (!name && vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, id) == JVMPI_SUCCESS) name = find(&names, (uintptr_t)id);
    return name ? *name : "?";
}

/* The name that JNI gives the class of an object. */
static void name_by_jni(JNIEnv *env, jobject object, char *name, size_t room) {
    jclass of_classes = (*env)->FindClass(env, "java/lang/Class"), class = (*env)->GetObjectClass(env, object);
    jmethodID get_name = (*env)->GetMethodID(env, of_classes, "getName", "()Ljava/lang/String;");
    jstring text = (*env)->CallObjectMethod(env, class, get_name);
    const char *chars = (*env)->GetStringUTFChars(env, text, NULL);
    snprintf(name, room, "%s", chars);
    (*env)->ReleaseStringUTFChars(env, text, chars);
    (*env)->DeleteLocalRef(env, text);
    (*env)->DeleteLocalRef(env, class);
    (*env)->DeleteLocalRef(env, of_classes);
}

/* What was told of an object, by the id that the host says it has. */
static void name_as_told(jobject object, char *name, size_t room) {
    void **there;
    jobjectID id = vm->jobject2jobjectID(object);
    vm->RawMonitorEnter(lock);
    there = find(&objects, (uintptr_t)id);
    if (!there) snprintf(name, room, "nothing");
    else if (((Object *)*there)->is_array) snprintf(name, room, "an array");
    else snprintf(name, room, "%s", name_of_class(((Object *)*there)->class_id));
    vm->RawMonitorExit(lock);
}

static void compare(const char *known, const char *told, const char *of) {
    checked++;
    if (strcmp(known, told) == 0) return;
    if (complaints < 20) snprintf(said[complaints], sizeof said[0], "%s of class %.100s was told as of %.100s", of, known, told);
    complaints++;
}

JNIEXPORT void JNICALL Java_Twins_check(JNIEnv *env, jclass of_program, jobjectArray all) {
    jsize count = (*env)->GetArrayLength(env, all), at;
    (void)of_program;
    for (at = 0; at < count; at++) {
        jclass class = (*env)->GetObjectArrayElement(env, all, at);
        jobject object = (*env)->AllocObject(env, class);
        char known[256], told[256];
        name_by_jni(env, object, known, sizeof known);
        name_as_told(object, told, sizeof told);
        compare(known, told, "an object");
        /* The class is an object as well, with the same id. */
        name_as_told(class, told, sizeof told);
        compare("java.lang.Class", told, "a class");
        compare(known, name_of_class(vm->jobject2jobjectID(class)), "a class by its id");
        (*env)->DeleteLocalRef(env, object);
        (*env)->DeleteLocalRef(env, class);
    }
}

JNIEXPORT void JNICALL Java_Twins_checkObjects(JNIEnv *env, jclass of_program, jobjectArray all) {
    jsize count = (*env)->GetArrayLength(env, all), at;
    (void)of_program;
    for (at = 0; at < count; at++) {
        jobject object = (*env)->GetObjectArrayElement(env, all, at);
        char known[256], told[256];
        name_by_jni(env, object, known, sizeof known);
        name_as_told(object, told, sizeof told);
        compare(known[0] == '[' ? "an array" : known, told, "a clone");
        (*env)->DeleteLocalRef(env, object);
    }
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *given, void *reserved) {
    (void)reserved;
    if ((*jvm)->GetEnv(jvm, (void **)&vm, JVMPI_VERSION_1_1) != JNI_OK) return JNI_ERR;
    snprintf(out_name, sizeof out_name, "%s", option(given, "file") ? option(given, "file") : "classes.txt");
    vm->NotifyEvent = notify;
    lock = vm->RawMonitorCreate("_classes");
    vm->EnableEvent(JVMPI_EVENT_CLASS_LOAD, NULL);
    vm->EnableEvent(JVMPI_EVENT_OBJECT_ALLOC, NULL);
    vm->EnableEvent(JVMPI_EVENT_OBJECT_FREE, NULL);
    vm->EnableEvent(JVMPI_EVENT_JVM_SHUT_DOWN, NULL);
    return JNI_OK;
}
