/* What JniCalls.java has native code do. */
#include <jni.h>
#include <pthread.h>
#include <stdarg.h>

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_JniCalls_##name
#define STATIC_NATIVE(type, name, ...) NATIVE(type, name)(JNIEnv *env, jclass self, __VA_ARGS__)

STATIC_NATIVE(jobject, allocate, jclass type) {
    return (*env)->AllocObject(env, type);
}

STATIC_NATIVE(void, construct, jobject object) {
    jclass type = (*env)->GetObjectClass(env, object);
    jmethodID constructor = (*env)->GetMethodID(env, type, "<init>", "()V");
    (*env)->CallNonvirtualVoidMethod(env, object, type, constructor);
}

static jobject new_by_list(JNIEnv *env, jclass type, jmethodID constructor, ...) {
    va_list arguments;
    va_start(arguments, constructor);
    jobject made = (*env)->NewObjectV(env, type, constructor, arguments);
    va_end(arguments);
    return made;
}

STATIC_NATIVE(jobject, create, jclass type, jint way) {
    jmethodID constructor = (*env)->GetMethodID(env, type, "<init>", "()V");
    switch (way) {
    case 0:
        return (*env)->NewObject(env, type, constructor);
    case 1:
        return new_by_list(env, type, constructor);
    default:
        return (*env)->NewObjectA(env, type, constructor, NULL);
    }
}

STATIC_NATIVE(jstring, text, jboolean utf) {
    static const jchar characters[] = {'c', 'h', 'a', 'r', 's'};
    return utf ? (*env)->NewStringUTF(env, "utf") : (*env)->NewString(env, characters, 5);
}

STATIC_NATIVE(jobject, array, jchar type, jint length) {
    switch (type) {
    case 'Z':
        return (*env)->NewBooleanArray(env, length);
    case 'B':
        return (*env)->NewByteArray(env, length);
    case 'C':
        return (*env)->NewCharArray(env, length);
    case 'S':
        return (*env)->NewShortArray(env, length);
    case 'I':
        return (*env)->NewIntArray(env, length);
    case 'J':
        return (*env)->NewLongArray(env, length);
    case 'F':
        return (*env)->NewFloatArray(env, length);
    default:
        return (*env)->NewDoubleArray(env, length);
    }
}

STATIC_NATIVE(jobjectArray, objects, jclass type, jint length, jobject element) {
    return (*env)->NewObjectArray(env, length, type, element);
}

static char direct[64];

NATIVE(jobject, buffer)(JNIEnv *env, jclass self) {
    return (*env)->NewDirectByteBuffer(env, direct, sizeof direct);
}

STATIC_NATIVE(jobject, reflected, jclass type, jint what) {
    if (what == 0) {
        jfieldID held = (*env)->GetFieldID(env, type, "held", "Ljava/lang/Object;");
        return (*env)->ToReflectedField(env, type, held, JNI_FALSE);
    }
    if (what == 1) {
        jfieldID shared = (*env)->GetStaticFieldID(env, type, "shared", "Ljava/lang/Object;");
        /* Any byte but 0 is true, for C. */
        return (*env)->ToReflectedField(env, type, shared, 42);
    }
    jmethodID constructor = (*env)->GetMethodID(env, type, "<init>", "()V");
    return (*env)->ToReflectedMethod(env, type, constructor, JNI_FALSE);
}

STATIC_NATIVE(void, setField, jobject origin, jobject value) {
    jclass type = (*env)->GetObjectClass(env, origin);
    jfieldID field = (*env)->GetFieldID(env, type, "held", "Ljava/lang/Object;");
    (*env)->SetObjectField(env, origin, field, value);
}

STATIC_NATIVE(void, setNumber, jobject origin, jint value) {
    jclass type = (*env)->GetObjectClass(env, origin);
    (*env)->SetIntField(env, origin, (*env)->GetFieldID(env, type, "number", "I"), value);
}

STATIC_NATIVE(void, setStatic, jclass type, jobject value) {
    jfieldID field = (*env)->GetStaticFieldID(env, type, "shared", "Ljava/lang/Object;");
    (*env)->SetStaticObjectField(env, type, field, value);
}

STATIC_NATIVE(void, setElement, jobjectArray array, jint index, jobject value) {
    (*env)->SetObjectArrayElement(env, array, index, value);
}

/* Native code ought not to, but some goes on although an exception is pending. */
STATIC_NATIVE(void, goOn, jobject origin, jobject value, jobjectArray array) {
    jclass failure = (*env)->FindClass(env, "java/lang/IllegalStateException");
    jclass type = (*env)->GetObjectClass(env, origin);
    jfieldID field = (*env)->GetFieldID(env, type, "held", "Ljava/lang/Object;");
    (*env)->ThrowNew(env, failure, "pending");
    (*env)->SetObjectField(env, origin, field, value);
    (*env)->SetObjectArrayElement(env, array, 0, value);
}

static JavaVM *vm;

static void *attached(void *unused) {
    JNIEnv *env;
    JavaVMAttachArgs arguments = {JNI_VERSION_1_8, "of native code", NULL};
    if ((*vm)->AttachCurrentThread(vm, (void **) &env, &arguments) == JNI_OK) {
        jclass type = (*env)->FindClass(env, "JniCalls");
        jmethodID run = (*env)->GetStaticMethodID(env, type, "onThreadOfNativeCode", "()V");
        (*env)->CallStaticVoidMethod(env, type, run);
        (*vm)->DetachCurrentThread(vm);
    }
    return NULL;
}

NATIVE(void, runThread)(JNIEnv *env, jclass self) {
    pthread_t thread;
    (*env)->GetJavaVM(env, &vm);
    if (pthread_create(&thread, NULL, attached, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

/* More local references than anybody expects, in frames and without. */
STATIC_NATIVE(jint, many, jobject origin, jint count) {
    jclass type = (*env)->GetObjectClass(env, origin);
    jfieldID field = (*env)->GetFieldID(env, type, "held", "Ljava/lang/Object;");
    jint made = 0;
    for (jint i = 0; i < count; i++) {
        int framed = i % 100 == 99 && (*env)->PushLocalFrame(env, 4) == 0;
        jobject array = (*env)->NewIntArray(env, i % 10);
        (*env)->SetObjectField(env, origin, field, array);
        made += array != NULL;
        if (framed) {
            (*env)->PopLocalFrame(env, NULL);
        }
    }
    return made;
}
