// Throws exceptions of C++, each with a destructor, at events, and says at the end of the process what has become of them.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

extern "C" {
#include "jvmpi.h"
}

static JVMPI_Interface *vm;
static std::string file;
static std::atomic<long> made, gone, uncaught;
static std::exception_ptr kept;

struct Thrown {
    std::string text;
    Thrown() : text(100, 'x') { made++; }
    Thrown(const Thrown &other) : text(other.text) { made++; }
    ~Thrown() { gone++; }
};

static void notify(JVMPI_Event *) {
    // One that was not ended counts as on its way, and `std::uncaught_exceptions` is how destructors tell that they must not throw.
    if (std::uncaught_exceptions() != 0) uncaught++;
    static std::atomic<long> count;
    long number = count++;
    if (number % 3) return;
    if (number == 0) {
        try {
            throw Thrown();
        } catch (...) {
            kept = std::current_exception();
        }
    }
    // That which is kept is of the kind that depends on another.
    if (number % 2) std::rethrow_exception(kept);
    throw Thrown();
}

static void finish() {
    long lives = 0;
    try {
        std::rethrow_exception(kept);
    } catch (const Thrown &thrown) {
        lives = thrown.text.size();
    }
    FILE *out = fopen(file.c_str(), "w");
    if (!out) return;
    fprintf(out, "complaints 0\nmade %ld\ngone %ld\nuncaught %ld\nkept %ld\n", made.load(), gone.load(), uncaught.load(), lives);
    fclose(out);
}

extern "C" JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *java, char *options, void *) {
    if (java->GetEnv(reinterpret_cast<void **>(&vm), JVMPI_VERSION_1) != JNI_OK) return JNI_ERR;
    file = options;
    vm->NotifyEvent = notify;
    vm->EnableEvent(JVMPI_EVENT_OBJECT_ALLOC, nullptr);
    vm->EnableEvent(JVMPI_EVENT_METHOD_ENTRY, nullptr);
    atexit(finish);
    return JNI_OK;
}
