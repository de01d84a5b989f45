/* A delegate that is wrong on purpose: does a check notice?
 *
 * It takes over the nodes that give the model's outputs, lets the CPU's own kernels compute them,
 * and then spoils what they gave, as its options ask. With option tensor it takes over every node
 * that it can, and spoils the one whose first output has that name, or each of several, with "|"
 * between their names. So any model will do whose shapes are known; what is not spoiled is bit for
 * bit the CPU's.
 *
 * The functions are in the order of rounding_delegate.c, whose first comment says who calls what.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option_text.h"
#include "tflite_delegate_abi.h"

/* ---- Options -------------------------------------------------------------------------- */

typedef enum {
    FAULT_NONE,
    FAULT_SCALE,
    FAULT_OFFSET,
    FAULT_STEP,
    FAULT_SATURATE,
    FAULT_ZERO,
    FAULT_STALE,
    FAULT_FROZEN,
    FAULT_NAN
} Fault;

typedef struct {
    Fault fault;
    float amount; /* NAN: that of the fault */
    int channel;  /* only this index of the last axis; -1: all */
    int every;    /* only in each inference whose number, from 1, is a multiple of this */
    int stride;   /* only values whose number, from 0, is a multiple of this */
    char *tensor; /* only nodes whose first output has such a name; NULL: what gives the model's outputs */
} Options;

static const Options DEFAULT_OPTIONS = {
    .fault = FAULT_NONE, .amount = NAN, .channel = -1, .every = 1, .stride = 1, .tensor = NULL};

static const Choice FAULTS[] = {{"none", FAULT_NONE},         {"scale", FAULT_SCALE},
                                {"offset", FAULT_OFFSET},     {"step", FAULT_STEP},
                                {"saturate", FAULT_SATURATE}, {"zero", FAULT_ZERO},
                                {"stale", FAULT_STALE},       {"frozen", FAULT_FROZEN},
                                {"nan", FAULT_NAN},           {NULL, 0}};

/* The name belongs to the options: the text of the caller's may be gone later. */
static bool parse_name(const char *value, char **name) {
    const size_t size = strlen(value) + 1;
    free(*name);
    *name = size > 1 ? malloc(size) : NULL;
    if (*name != NULL) {
        memcpy(*name, value, size);
    }
    return *name != NULL;
}

static bool parse_option(const char *key, const char *value, Options *options) {
    if (strcmp(key, "fault") == 0) {
        const Choice *choice = find_choice(FAULTS, value, strlen(value));
        if (choice != NULL) {
            options->fault = (Fault)choice->value;
        }
        return choice != NULL;
    }
    if (strcmp(key, "amount") == 0) {
        return parse_number(value, &options->amount);
    }
    if (strcmp(key, "channel") == 0) {
        return parse_count(value, &options->channel);
    }
    if (strcmp(key, "tensor") == 0) {
        return parse_name(value, &options->tensor);
    }
    if (strcmp(key, "stride") == 0) {
        return parse_count(value, &options->stride) && options->stride > 0;
    }
    return strcmp(key, "every") == 0 && parse_count(value, &options->every) && options->every > 0;
}

static float default_amount(Fault fault) {
    switch (fault) {
    case FAULT_SATURATE:
        return 100.0f / 127.0f;
    case FAULT_OFFSET:
        return 0.1f;
    case FAULT_STEP:
        return 1.0f;
    default:
        return 1.1f;
    }
}

static bool parse_options(const char *const *keys, const char *const *values, size_t count,
                          Options *options, ReportError report_error) {
    *options = DEFAULT_OPTIONS;
    for (size_t i = 0; i < count; i++) {
        if (!parse_option(keys[i], values[i], options)) {
            report(report_error,
                   "faulty_delegate: option '%s' is '%s', expected fault (none, scale, offset, "
                   "step, saturate, zero, stale, frozen or nan), amount (a number), channel (0 or "
                   "more), stride (1 or more), every (1 or more) or tensor (names with | between)",
                   keys[i], values[i]);
            free(options->tensor);
            return false;
        }
    }
    if (isnan(options->amount)) {
        options->amount = default_amount(options->fault);
    }
    return true;
}

/* ---- Numbers of any type -------------------------------------------------------------- */

/* The size of an element, 0 for types that are left alone. */
static size_t size_of(int32_t type) {
    switch (type) {
    case kTfLiteFloat32:
    case kTfLiteInt32:
        return 4;
    case kTfLiteInt64:
        return 8;
    case kTfLiteInt16:
        return 2;
    case kTfLiteInt8:
    case kTfLiteUInt8:
        return 1;
    default:
        return 0;
    }
}

static double read_number(int32_t type, const void *data, size_t index) {
    switch (type) {
    case kTfLiteFloat32:
        return ((const float *)data)[index];
    case kTfLiteInt32:
        return ((const int32_t *)data)[index];
    case kTfLiteInt64:
        return (double)((const int64_t *)data)[index];
    case kTfLiteInt16:
        return ((const int16_t *)data)[index];
    case kTfLiteInt8:
        return ((const int8_t *)data)[index];
    default:
        return ((const uint8_t *)data)[index];
    }
}

static double within(double value, double low, double high) {
    return value < low ? low : value > high ? high : nearbyint(value);
}

static void write_number(int32_t type, void *data, size_t index, double value) {
    switch (type) {
    case kTfLiteFloat32:
        ((float *)data)[index] = (float)value;
        break;
    case kTfLiteInt32:
        ((int32_t *)data)[index] = (int32_t)within(value, INT32_MIN, INT32_MAX);
        break;
    case kTfLiteInt64:
        ((int64_t *)data)[index] = (int64_t)within(value, -9e15, 9e15);
        break;
    case kTfLiteInt16:
        ((int16_t *)data)[index] = (int16_t)within(value, INT16_MIN, INT16_MAX);
        break;
    case kTfLiteInt8:
        ((int8_t *)data)[index] = (int8_t)within(value, INT8_MIN, INT8_MAX);
        break;
    default:
        ((uint8_t *)data)[index] = (uint8_t)within(value, 0, UINT8_MAX);
    }
}

/* ---- The fault ------------------------------------------------------------------------ */

typedef struct {
    int tensor;
    void *kept; /* the output before, or the first one */
    double largest; /* absolute value of the first output, 0 before it */
} Output;

/* What the fault adds to each number, all of which lie from low to high. */
static double added(const Options *options, int32_t type, double low, double high) {
    switch (options->fault) {
    case FAULT_OFFSET:
        return options->amount * (high - low);
    case FAULT_STEP: /* the whole number next to one is one quantisation step away */
        return options->amount * (type == kTfLiteFloat32 ? fmax(fabs(low), fabs(high)) : 1);
    default:
        return 0;
    }
}

static double spoiled(const Options *options, double value, double more, double largest) {
    switch (options->fault) {
    case FAULT_SCALE:
        return value * options->amount;
    case FAULT_OFFSET:
    case FAULT_STEP:
        return value + more;
    case FAULT_SATURATE:
        return fmin(fmax(value, -options->amount * largest), options->amount * largest);
    case FAULT_ZERO:
        return 0;
    case FAULT_NAN:
        return NAN;
    default:
        return value;
    }
}

static void spoil_numbers(const Options *options, const TfLiteTensor *tensor, Output *output) {
    const size_t count = tensor->bytes / size_of(tensor->type);
    const int rank = tensor->dims->size;
    const size_t channels = rank > 0 ? (size_t)tensor->dims->data[rank - 1] : 1;
    const double zero = tensor->type == kTfLiteFloat32 ? 0 : tensor->params.zero_point;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        const double value = read_number(tensor->type, tensor->data, i) - zero;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    if (output->largest == 0) {
        output->largest = fmax(fabs(low), fabs(high));
    }
    const double more = added(options, tensor->type, low, high);
    for (size_t i = 0; i < count; i++) {
        const bool is_channel = options->channel < 0 || i % channels == (size_t)options->channel;
        if (is_channel && i % (size_t)options->stride == 0) {
            const double value = read_number(tensor->type, tensor->data, i) - zero;
            const double changed = spoiled(options, value, more, output->largest);
            write_number(tensor->type, tensor->data, i, changed + zero);
        }
    }
}

/* Gives what was kept, and keeps what was computed; the first time there is nothing to give. */
static void give_another(const Options *options, const TfLiteTensor *tensor, Output *output,
                         bool strikes) {
    void *computed = malloc(tensor->bytes);
    if (computed == NULL) {
        return;
    }
    memcpy(computed, tensor->data, tensor->bytes);
    if (output->kept != NULL && strikes) {
        memcpy(tensor->data, output->kept, tensor->bytes);
    }
    if (output->kept == NULL || options->fault == FAULT_STALE) {
        free(output->kept);
        output->kept = computed;
    } else {
        free(computed);
    }
}

/* ---- The kernel: runs one partition --------------------------------------------------- */

/* A node with the CPU's functions for it, and those of its outputs that are to be spoiled. */
typedef struct {
    TfLiteNode node;
    TfLiteRegistration registration;
    int output_count;
    Output *outputs;
} Inner;

typedef struct {
    Options options;
    long inferences;
    int inner_count;
    Inner *inner;
    TfLiteIntArray *within; /* tensors that nothing outside of the partition reads */
} Kernel;

static bool contains(const TfLiteIntArray *array, int value) {
    for (int i = 0; i < array->size; i++) {
        if (array->data[i] == value) {
            return true;
        }
    }
    return false;
}

static TfLiteIntArray *copied(const TfLiteIntArray *array, int more) {
    const int size = array == NULL ? 0 : array->size;
    TfLiteIntArray *copy = malloc(sizeof(TfLiteIntArray) + (size_t)(size + more) * sizeof(int));
    if (copy != NULL) {
        copy->size = size;
        for (int i = 0; i < size; i++) {
            copy->data[i] = array->data[i];
        }
    }
    return copy;
}

/* Whether a fault can be put into these numbers. */
static bool holds(const Options *options, int32_t type) {
    return options->fault == FAULT_NAN ? type == kTfLiteFloat32 : size_of(type) > 0;
}

/* Whether a tensor has one of the names, which a "|" separates. */
static bool has_name(const TfLiteTensor *tensor, const char *names) {
    const size_t size = tensor->name == NULL ? 0 : strlen(tensor->name);
    for (const char *start = names; size > 0 && *start != '\0';) {
        const size_t length = strcspn(start, "|");
        if (length == size && strncmp(start, tensor->name, size) == 0) {
            return true;
        }
        start += length + (start[length] == '|');
    }
    return false;
}

/* Whether what a node gives is to be spoiled. */
static bool is_chosen(const TfLiteContext *context, const Options *options, const TfLiteNode *node) {
    return options->tensor == NULL ||
           has_name(&context->tensors[node->outputs->data[0]], options->tensor);
}

static void kernel_free(TfLiteContext *context, void *user_data) {
    (void)context;
    Kernel *kernel = user_data;
    if (kernel == NULL) {
        return;
    }
    for (int i = 0; i < kernel->inner_count; i++) {
        Inner *inner = &kernel->inner[i];
        free(inner->node.temporaries);
        for (int j = 0; j < inner->output_count; j++) {
            free(inner->outputs[j].kept);
        }
        free(inner->outputs);
    }
    free(kernel->inner);
    free(kernel->within);
    free(kernel);
}

/* Notes which outputs of a node are to be spoiled. */
static bool note_outputs(const TfLiteContext *context, const Options *options, Inner *inner) {
    const TfLiteIntArray *outputs = inner->node.outputs;
    if (!is_chosen(context, options, &inner->node)) {
        return true;
    }
    inner->outputs = calloc((size_t)outputs->size, sizeof *inner->outputs);
    for (int i = 0; inner->outputs != NULL && i < outputs->size; i++) {
        if (holds(options, context->tensors[outputs->data[i]].type)) {
            inner->outputs[inner->output_count++].tensor = outputs->data[i];
        }
    }
    return inner->outputs != NULL;
}

/* Notes which outputs of a node are read within the partition alone, or not at all. */
static bool note_within(const TfLiteIntArray *partition_outputs, const TfLiteNode *node,
                        TfLiteIntArray **within) {
    TfLiteIntArray *joined = copied(*within, node->outputs->size);
    if (joined == NULL) {
        return false;
    }
    for (int i = 0; i < node->outputs->size; i++) {
        if (!contains(partition_outputs, node->outputs->data[i])) {
            joined->data[joined->size++] = node->outputs->data[i];
        }
    }
    free(*within);
    *within = joined;
    return true;
}

/* Copies a node of the partition into the kernel. */
static bool append_node(TfLiteContext *context, Kernel *kernel, int node_index,
                        const TfLiteIntArray *partition_outputs) {
    TfLiteNode *node;
    TfLiteRegistration *registration;
    if (context->GetNodeAndRegistration(context, node_index, &node, &registration) != kTfLiteOk) {
        return false;
    }
    Inner *inner = &kernel->inner[kernel->inner_count++];
    inner->node = *node;
    inner->registration = *registration;
    inner->node.temporaries = copied(node->temporaries, 0); /* prepare may replace it */
    if (node->temporaries != NULL) {
        node->temporaries->size = 0; /* else TensorFlow Lite takes their memory once the node is replaced */
    }
    return inner->node.temporaries != NULL && note_outputs(context, &kernel->options, inner) &&
           note_within(partition_outputs, node, &kernel->within);
}

static void *kernel_init(TfLiteContext *context, const char *buffer, size_t length) {
    (void)length;
    const TfLiteDelegateParams *params = (const TfLiteDelegateParams *)(const void *)buffer;
    const TfLiteIntArray *nodes = params->nodes_to_replace;
    Kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL) {
        return NULL;
    }
    kernel->options = *(const Options *)params->delegate->data_;
    kernel->inner = calloc((size_t)nodes->size, sizeof *kernel->inner);
    for (int i = 0; i < nodes->size; i++) {
        if (kernel->inner == NULL ||
            !append_node(context, kernel, nodes->data[i], params->output_tensors)) {
            kernel_free(context, kernel);
            return NULL;
        }
    }
    return kernel;
}

/* TensorFlow Lite gives memory to the temporary tensors of the nodes that it runs: of this one.
 * So tensors within the partition, which would have none, are made such ones, too. */
static TfLiteStatus take_temporaries(TfLiteNode *node, const TfLiteIntArray *more) {
    if (more == NULL || more->size == 0) {
        return kTfLiteOk;
    }
    TfLiteIntArray *joined = copied(node->temporaries, more->size);
    if (joined == NULL) {
        return kTfLiteError;
    }
    memcpy(joined->data + joined->size, more->data, (size_t)more->size * sizeof(int));
    joined->size += more->size;
    free(node->temporaries);
    node->temporaries = joined;
    return kTfLiteOk;
}

static TfLiteStatus kernel_prepare(TfLiteContext *context, TfLiteNode *node) {
    Kernel *kernel = node->user_data;
    if (kernel == NULL) {
        context->ReportError(context, "faulty_delegate: cannot set up a partition");
        return kTfLiteError;
    }
    if (node->temporaries != NULL) {
        node->temporaries->size = 0;
    }
    for (int i = 0; i < kernel->inner_count; i++) {
        Inner *inner = &kernel->inner[i];
        TfLiteStatus status = kTfLiteOk;
        if (inner->registration.prepare != NULL) {
            status = inner->registration.prepare(context, &inner->node);
        }
        if (status == kTfLiteOk) {
            status = take_temporaries(node, inner->node.temporaries);
        }
        if (status != kTfLiteOk) {
            return status;
        }
    }
    return take_temporaries(node, kernel->within);
}

static void spoil(const Options *options, const TfLiteContext *context, Output *output,
                  bool strikes) {
    const TfLiteTensor *tensor = &context->tensors[output->tensor];
    if (options->fault == FAULT_STALE || options->fault == FAULT_FROZEN) {
        give_another(options, tensor, output, strikes);
    } else if (options->fault != FAULT_NONE && strikes) {
        spoil_numbers(options, tensor, output);
    }
}

static TfLiteStatus kernel_invoke(TfLiteContext *context, TfLiteNode *node) {
    Kernel *kernel = node->user_data;
    const bool strikes = ++kernel->inferences % kernel->options.every == 0;
    for (int i = 0; i < kernel->inner_count; i++) {
        Inner *inner = &kernel->inner[i];
        const TfLiteStatus status = inner->registration.invoke(context, &inner->node);
        if (status != kTfLiteOk) {
            return status;
        }
        for (int j = 0; j < inner->output_count; j++) {
            spoil(&kernel->options, context, &inner->outputs[j], strikes);
        }
    }
    return kTfLiteOk;
}

/* ---- The delegate: chooses nodes ------------------------------------------------------ */

static bool is_read(TfLiteContext *context, const TfLiteIntArray *plan, int tensor) {
    for (int i = 0; i < plan->size; i++) {
        TfLiteNode *node;
        TfLiteRegistration *registration;
        if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) !=
                kTfLiteOk ||
            contains(node->inputs, tensor)) {
            return true;
        }
    }
    return false;
}

/* Whether the node's functions can be called from here, with outputs of a shape that is known and
 * that are computed anew in every inference. */
static bool can_run(const TfLiteContext *context, const TfLiteNode *node,
                    const TfLiteRegistration *registration) {
    const bool runs_graphs = registration->builtin_code == kTfLiteBuiltinIf ||
                             registration->builtin_code == kTfLiteBuiltinWhile ||
                             registration->builtin_code == kTfLiteBuiltinCallOnce;
    if (runs_graphs || registration->invoke == NULL || node->delegate != NULL) {
        return false;
    }
    for (int i = 0; i < node->outputs->size; i++) {
        if (node->outputs->data[i] == kTfLiteOptionalTensor ||
            context->tensors[node->outputs->data[i]].allocation_type != kTfLiteArenaRw) {
            return false;
        }
    }
    return node->outputs->size > 0;
}

/* Whether a node gives outputs of the graph alone, all of which can be spoiled. */
static bool ends_graph(TfLiteContext *context, const Options *options, const TfLiteIntArray *plan,
                       const TfLiteNode *node) {
    for (int i = 0; i < node->outputs->size; i++) {
        const int output = node->outputs->data[i];
        if (!holds(options, context->tensors[output].type) || is_read(context, plan, output)) {
            return false;
        }
    }
    return true;
}

static bool is_wanted(TfLiteContext *context, const Options *options, const TfLiteIntArray *plan,
                      const TfLiteNode *node, const TfLiteRegistration *registration) {
    return can_run(context, node, registration) &&
           (options->tensor != NULL || ends_graph(context, options, plan, node));
}

static TfLiteStatus delegate_prepare(TfLiteContext *context, TfLiteDelegate *delegate) {
    TfLiteIntArray *plan;
    TfLiteStatus status = context->GetExecutionPlan(context, &plan);
    if (status != kTfLiteOk) {
        return status;
    }
    TfLiteIntArray *nodes = copied(plan, 0); /* the plan changes while nodes are looked at */
    TfLiteIntArray *chosen = copied(plan, 0);
    if (nodes == NULL || chosen == NULL) {
        free(nodes);
        free(chosen);
        context->ReportError(context, "faulty_delegate: out of memory");
        return kTfLiteError;
    }
    chosen->size = 0;
    for (int i = 0; i < nodes->size && status == kTfLiteOk; i++) {
        TfLiteNode *node;
        TfLiteRegistration *registration;
        status = context->GetNodeAndRegistration(context, nodes->data[i], &node, &registration);
        if (status == kTfLiteOk && is_wanted(context, delegate->data_, nodes, node, registration)) {
            chosen->data[chosen->size++] = nodes->data[i];
        }
    }
    if (status == kTfLiteOk) {
        const TfLiteRegistration kernel = {
            .init = kernel_init,
            .free = kernel_free,
            .prepare = kernel_prepare,
            .invoke = kernel_invoke,
            .builtin_code = kTfLiteBuiltinDelegate,
            .custom_name = "FaultyDelegate",
            .version = 1,
        };
        status = context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, chosen, delegate);
    }
    free(nodes);
    free(chosen);
    return status;
}

/* ---- The two functions that TensorFlow Lite looks up by name -------------------------- */

void tflite_plugin_destroy_delegate(TfLiteDelegate *delegate) {
    if (delegate != NULL) {
        free(((Options *)delegate->data_)->tensor);
        free(delegate->data_);
        free(delegate);
    }
}

/* Returns NULL after a call of report_error if the options are not understood. */
TfLiteDelegate *tflite_plugin_create_delegate(const char *const *keys, const char *const *values,
                                              size_t option_count, ReportError report_error) {
    Options options;
    if (!parse_options(keys, values, option_count, &options, report_error)) {
        return NULL;
    }
    TfLiteDelegate *delegate = calloc(1, sizeof *delegate);
    Options *stored = malloc(sizeof *stored);
    if (delegate == NULL || stored == NULL) {
        free(options.tensor);
        free(delegate);
        free(stored);
        report(report_error, "faulty_delegate: out of memory");
        return NULL;
    }
    *stored = options;
    delegate->data_ = stored;
    delegate->Prepare = delegate_prepare;
    delegate->flags = kTfLiteDelegateFlagsNone;
    return delegate;
}
