/* Costs what it cannot help: its options name the events that it enables, methods and alloc, and it does nothing with them, but for the call
   trace of each allocation, four frames deep. */
#include <string.h>

#include "jvmpi.h"

#define DEPTH 4

static JVMPI_Interface *vm;

static void notify(JVMPI_Event *event) {
    if (event->event_type == JVMPI_EVENT_OBJECT_ALLOC && event->env_id) {
        JVMPI_CallFrame frames[DEPTH];
        JVMPI_CallTrace trace;
        trace.env_id = event->env_id;
        trace.num_frames = 0;
        trace.frames = frames;
        vm->GetCallTrace(&trace, DEPTH);
    }
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *java, char *options, void *reserved) {
    (void)reserved;
    if ((*java)->GetEnv(java, (void **)&vm, JVMPI_VERSION_1) != JNI_OK) return JNI_ERR;
    vm->NotifyEvent = notify;
    if (options && strstr(options, "methods")) {
        vm->EnableEvent(JVMPI_EVENT_METHOD_ENTRY, NULL);
        vm->EnableEvent(JVMPI_EVENT_METHOD_EXIT, NULL);
    }
    if (options && strstr(options, "alloc")) vm->EnableEvent(JVMPI_EVENT_OBJECT_ALLOC, NULL);
    return JNI_OK;
}
