/* Options of an agent: names and values between commas. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <string.h>

/* The value of an option `name=value`, or "" for one without; NULL if it is not there. */
static const char *option(const char *options, const char *name) {
    static __thread char value[1024];
    size_t length = strlen(name);
    while (options && *options) {
        const char *end = strchr(options, ',');
        size_t all = end ? (size_t)(end - options) : strlen(options);
        if (all >= length && strncmp(options, name, length) == 0 && (all == length || options[length] == '=')) {
            size_t rest = all == length ? 0 : all - length - 1;
            if (rest >= sizeof value) rest = sizeof value - 1;
            memcpy(value, options + length + 1, rest);
            value[rest] = 0;
            return value;
        }
        options = end ? end + 1 : NULL;
    }
    return NULL;
}

#endif
