/* What every delegate needs to read its options, which are texts, and to say what is wrong. */
#ifndef OPTION_TEXT_H
#define OPTION_TEXT_H

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that an option accepts; lists of them end with a NULL name. */
typedef struct {
    const char *name;
    int value;
} Choice;

static const Choice *find_choice(const Choice *choices, const char *name, size_t length) {
    for (const Choice *choice = choices; choice->name != NULL; choice++) {
        if (strlen(choice->name) == length && strncmp(choice->name, name, length) == 0) {
            return choice;
        }
    }
    return NULL;
}

/* A whole number, 0 or more. */
static bool parse_count(const char *value, int *count) {
    if (!isdigit((unsigned char)value[0])) {
        return false;
    }
    char *end;
    errno = 0;
    const long number = strtol(value, &end, 10);
    if (*end != '\0' || errno != 0 || number > INT_MAX) {
        return false;
    }
    *count = (int)number;
    return true;
}

/* A finite number. */
static bool parse_number(const char *value, float *number) {
    char *end;
    const float found = strtof(value, &end);
    if (end == value || *end != '\0' || !isfinite(found)) {
        return false;
    }
    *number = found;
    return true;
}

typedef void (*ReportError)(const char *message);

/* Tells the user, through the caller, why there is no delegate. */
static void report(ReportError report_error, const char *format, ...) {
    if (report_error == NULL) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *message = length < 0 ? NULL : malloc((size_t)length + 1);
    if (message == NULL) {
        report_error("out of memory");
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, (size_t)length + 1, format, arguments);
    va_end(arguments);
    report_error(message);
    free(message);
}

#endif
