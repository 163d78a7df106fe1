/* What the agents here share: tables of addresses, options, and the interface. */
#ifndef TABLE_H
#define TABLE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jvmpi.h"
#include "options.h"

#define EMPTY ((uintptr_t)0)
#define GONE ((uintptr_t)1)

typedef struct {
    uintptr_t *keys;
    void **values;
    size_t room, used, live;
} Table;

static size_t slot_of(Table *table, uintptr_t key) {
    return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20) & (table->room - 1);
}

static void **find(Table *table, uintptr_t key) {
    size_t at;
    if (table->room == 0 || key < 2) return NULL;
    for (at = slot_of(table, key); table->keys[at] != EMPTY; at = (at + 1) & (table->room - 1))
        if (table->keys[at] == key) return &table->values[at];
    return NULL;
}

/* Where the value of the key is, which is put in if it is not there. */
static void **place(Table *table, uintptr_t key) {
    void **there = find(table, key);
    size_t at;
    if (there) return there;
    if (table->used * 2 >= table->room) {
        Table old = *table;
        table->room = old.room ? old.live * 4 < old.room ? old.room : old.room * 2 : 1024;
        table->keys = calloc(table->room, sizeof *table->keys);
        table->values = calloc(table->room, sizeof *table->values);
        table->used = table->live = 0;
        for (at = 0; at < old.room; at++)
            if (old.keys[at] > GONE) *place(table, old.keys[at]) = old.values[at];
        free(old.keys);
        free(old.values);
    }
    for (at = slot_of(table, key); table->keys[at] != EMPTY; at = (at + 1) & (table->room - 1)) {}
    table->keys[at] = key;
    table->values[at] = NULL;
    table->used++;
    table->live++;
    return &table->values[at];
}

static int take(Table *table, uintptr_t key) {
    void **there = find(table, key);
    if (!there) return 0;
    table->keys[there - table->values] = GONE;
    table->live--;
    return 1;
}

#endif
