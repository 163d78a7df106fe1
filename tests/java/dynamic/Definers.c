/* Defines the classes that Definers.java has native code define. */
#include <jni.h>

JNIEXPORT jclass JNICALL Java_Definers_define(JNIEnv *env, jclass self, jobject loader, jbyteArray bytes) {
    jsize length = (*env)->GetArrayLength(env, bytes);
    jbyte *elements = (*env)->GetByteArrayElements(env, bytes, NULL);
    jclass defined = (*env)->DefineClass(env, NULL, loader, elements, length);
    (*env)->ReleaseByteArrayElements(env, bytes, elements, JNI_ABORT);
    return defined;
}
