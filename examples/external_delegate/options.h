/* The options of the example delegate: keys and values, as text, from the user.
 *
 * A new option is a field of Options, a default, a parse function and a line in
 * OPTION_PARSERS. Whatever is not understood is refused with a text that says what would
 * be: an option that is silently ignored looks like a delegate that does not work.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "option_text.h"

enum { OP_ADD = 1, OP_CONV = 2, OP_DEPTHWISE = 4 };

typedef enum {
    FAIL_NEVER,
    FAIL_CREATE,
    FAIL_PREPARE,
    FAIL_INVOKE,
    FAIL_ABORT,
    FAIL_HANG,
    FAIL_LEAK
} Failure;

typedef struct {
    Precision precision;
    unsigned ops;  /* OP_... bits */
    int max_nodes; /* of each subgraph */
    Failure fail;
    float fail_at; /* only for this first value of the partition's first input; NAN: for any */
    int leak_mb;   /* of each inference that leaks; 0: DEFAULT_LEAK_MB */
} Options;

enum { DEFAULT_LEAK_MB = 64 };

static const Options DEFAULT_OPTIONS = {
    .precision = PRECISION_FP16,
    .ops = OP_ADD | OP_CONV | OP_DEPTHWISE,
    .max_nodes = INT_MAX,
    .fail = FAIL_NEVER,
    .fail_at = NAN,
    .leak_mb = 0,
};

static const Choice PRECISIONS[] = {
    {"fp32", PRECISION_FP32}, {"fp16", PRECISION_FP16}, {"bf16", PRECISION_BF16}, {NULL, 0}};
static const Choice OPS[] = {
    {"add", OP_ADD}, {"conv", OP_CONV}, {"depthwise", OP_DEPTHWISE}, {NULL, 0}};
static const Choice FAILURES[] = {{"create", FAIL_CREATE}, {"prepare", FAIL_PREPARE},
                                  {"invoke", FAIL_INVOKE}, {"abort", FAIL_ABORT},
                                  {"hang", FAIL_HANG},     {"leak", FAIL_LEAK},
                                  {NULL, 0}};

static bool parse_precision(const char *value, Options *options) {
    const Choice *choice = find_choice(PRECISIONS, value, strlen(value));
    if (choice != NULL) {
        options->precision = (Precision)choice->value;
    }
    return choice != NULL;
}

static bool parse_ops(const char *value, Options *options) {
    options->ops = 0;
    for (;;) {
        const size_t length = strcspn(value, ",");
        const Choice *choice = find_choice(OPS, value, length);
        if (choice == NULL) {
            return false;
        }
        options->ops |= (unsigned)choice->value;
        if (value[length] == '\0') {
            return true;
        }
        value += length + 1;
    }
}

static bool parse_max_nodes(const char *value, Options *options) {
    return parse_count(value, &options->max_nodes);
}

static bool parse_fail(const char *value, Options *options) {
    const Choice *choice = find_choice(FAILURES, value, strlen(value));
    if (choice != NULL) {
        options->fail = (Failure)choice->value;
    }
    return choice != NULL;
}

static bool parse_fail_at(const char *value, Options *options) {
    return parse_number(value, &options->fail_at);
}

static bool parse_leak_mb(const char *value, Options *options) {
    return parse_count(value, &options->leak_mb) && options->leak_mb > 0;
}

typedef struct {
    const char *key;
    const char *accepted;
    bool (*parse)(const char *value, Options *options);
} OptionParser;

static const OptionParser OPTION_PARSERS[] = {
    {"precision", "fp32, fp16 or bf16", parse_precision},
    {"ops", "a comma-separated list of add, conv and depthwise", parse_ops},
    {"max_nodes", "a whole number, 0 or more", parse_max_nodes},
    {"fail", "create, prepare, invoke, abort, hang or leak", parse_fail},
    {"fail_at", "a finite number", parse_fail_at},
    {"leak_mb", "a whole number, 1 or more", parse_leak_mb},
};
enum { OPTION_COUNT = sizeof OPTION_PARSERS / sizeof *OPTION_PARSERS };

static bool parse_option(const char *key, const char *value, Options *options,
                         ReportError report_error) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionParser *option = &OPTION_PARSERS[i];
        if (strcmp(option->key, key) != 0) {
            continue;
        }
        const bool understood = option->parse(value, options);
        if (!understood) {
            report(report_error, "rounding_delegate: option '%s' is '%s', expected %s", key, value,
                   option->accepted);
        }
        return understood;
    }
    report(report_error,
           "rounding_delegate: unknown option '%s', expected precision, ops, max_nodes, fail, "
           "fail_at or leak_mb",
           key);
    return false;
}

static bool fails_in_inference(Failure failure) {
    return failure == FAIL_INVOKE || failure == FAIL_ABORT || failure == FAIL_HANG ||
           failure == FAIL_LEAK;
}

/* Options that say more about a failure need that failure. */
static bool fit_together(const Options *options, ReportError report_error) {
    if (!isnan(options->fail_at) && !fails_in_inference(options->fail)) {
        report(report_error,
               "rounding_delegate: option 'fail_at' needs 'fail' with invoke, abort, hang or leak");
        return false;
    }
    if (options->leak_mb != 0 && options->fail != FAIL_LEAK) {
        report(report_error, "rounding_delegate: option 'leak_mb' needs 'fail' with leak");
        return false;
    }
    return true;
}

static bool parse_options(const char *const *keys, const char *const *values, size_t count,
                          Options *options, ReportError report_error) {
    *options = DEFAULT_OPTIONS;
    for (size_t i = 0; i < count; i++) {
        if (!parse_option(keys[i], values[i], options, report_error)) {
            return false;
        }
    }
    return fit_together(options, report_error);
}

#endif
