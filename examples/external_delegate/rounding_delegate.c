/* An example of a TensorFlow Lite external delegate: it takes over float32 ADD, CONV_2D and
 * DEPTHWISE_CONV_2D and computes them with operands and results rounded to fp16 or bf16, as
 * a low-precision accelerator would.
 *
 * How TensorFlow Lite uses it, from top to bottom of a delegate's life (and from bottom to
 * top of this file):
 *
 *   tflite_plugin_create_delegate   the user's options -> a TfLiteDelegate
 *   delegate_prepare                which nodes of the graph do we take? TensorFlow Lite joins
 *                                   neighbours to partitions, each run by one DELEGATE node
 *   kernel_init, kernel_prepare     get ready to run one partition
 *   kernel_invoke                   run it, once for every inference
 *   kernel_free
 *   tflite_plugin_destroy_delegate
 */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arithmetic.h"
#include "operation.h"
#include "options.h"
#include "tflite_delegate_abi.h"

/* ---- The kernel: runs one partition --------------------------------------------------- */

typedef struct {
    Options options;
    int operation_count;
    Operation operations[];
} Kernel;

static bool contains(const TfLiteIntArray *array, int value) {
    for (int i = 0; i < array->size; i++) {
        if (array->data[i] == value) {
            return true;
        }
    }
    return false;
}

static float *allocate_like(const TfLiteContext *context, int tensor_index) {
    return malloc(context->tensors[tensor_index].bytes);
}

/* TensorFlow Lite gives no memory to tensors that only exist within a partition. */
static bool allocate_buffers(const TfLiteContext *context, const TfLiteIntArray *partition_outputs,
                             Operation *operation) {
    if (!contains(partition_outputs, operation->output)) {
        operation->output_data = allocate_like(context, operation->output);
        if (operation->output_data == NULL) {
            return false;
        }
    }
    if (operation->is_addition) {
        return true;
    }
    const size_t channels = (size_t)operation->convolution.output[CHANNELS];
    operation->rounded_image = allocate_like(context, operation->inputs[IMAGE]);
    operation->rounded_filter = allocate_like(context, operation->inputs[FILTER]);
    operation->rounded_bias = calloc(channels, sizeof(float));
    return operation->rounded_image != NULL && operation->rounded_filter != NULL &&
           operation->rounded_bias != NULL;
}

static float *tensor_data(const Kernel *kernel, const TfLiteContext *context, int index) {
    for (int i = 0; i < kernel->operation_count; i++) {
        const Operation *operation = &kernel->operations[i];
        if (operation->output == index && operation->output_data != NULL) {
            return operation->output_data;
        }
    }
    return context->tensors[index].data;
}

static bool is_constant(const TfLiteContext *context, int index) {
    return context->tensors[index].allocation_type == kTfLiteMmapRo;
}

static void round_filter(const Kernel *kernel, const TfLiteContext *context,
                         const Operation *operation) {
    const int index = operation->inputs[FILTER];
    const float *filter = tensor_data(kernel, context, index);
    const Precision precision = kernel->options.precision;
    if (operation->convolution.depthwise) {
        round_all(precision, filter, operation->rounded_filter,
                  element_count(&context->tensors[index]));
    } else {
        pack_filter(precision, operation->convolution.filter, filter, operation->rounded_filter);
    }
}

static void round_bias(const Kernel *kernel, const TfLiteContext *context,
                       const Operation *operation) {
    const int index = operation->inputs[BIAS];
    round_all(kernel->options.precision, tensor_data(kernel, context, index),
              operation->rounded_bias, element_count(&context->tensors[index]));
}

/* Rounds those weights that are, or are not, constants of the model. */
static void round_weights(const Kernel *kernel, const TfLiteContext *context,
                          const Operation *operation, bool constants) {
    if (is_constant(context, operation->inputs[FILTER]) == constants) {
        round_filter(kernel, context, operation);
    }
    const int bias = operation->inputs[BIAS];
    if (bias != kTfLiteOptionalTensor && is_constant(context, bias) == constants) {
        round_bias(kernel, context, operation);
    }
}

static void kernel_free(TfLiteContext *context, void *user_data) {
    (void)context;
    Kernel *kernel = user_data;
    if (kernel == NULL) {
        return;
    }
    for (int i = 0; i < kernel->operation_count; i++) {
        free(kernel->operations[i].output_data);
        free(kernel->operations[i].rounded_image);
        free(kernel->operations[i].rounded_filter);
        free(kernel->operations[i].rounded_bias);
    }
    free(kernel);
}

/* Reads one node of the partition into the kernel's next operation. */
static bool append_operation(TfLiteContext *context, Kernel *kernel, int node_index,
                             const TfLiteIntArray *partition_outputs) {
    TfLiteNode *node;
    TfLiteRegistration *registration;
    if (context->GetNodeAndRegistration(context, node_index, &node, &registration) != kTfLiteOk) {
        return false;
    }
    Operation *operation = &kernel->operations[kernel->operation_count];
    if (!read_operation(context, node, registration, operation)) {
        return false;
    }
    kernel->operation_count++;
    if (!allocate_buffers(context, partition_outputs, operation)) {
        return false;
    }
    if (!operation->is_addition) {
        round_weights(kernel, context, operation, true);
    }
    return true;
}

/* Called once for each partition. All shapes are final here: the delegate has no flags, so
 * TensorFlow Lite makes new kernels when an input is resized. */
static void *kernel_init(TfLiteContext *context, const char *buffer, size_t length) {
    (void)length;
    const TfLiteDelegateParams *params = (const TfLiteDelegateParams *)(const void *)buffer;
    const TfLiteIntArray *nodes = params->nodes_to_replace;
    Kernel *kernel = calloc(1, sizeof(Kernel) + (size_t)nodes->size * sizeof(Operation));
    if (kernel == NULL) {
        return NULL;
    }
    kernel->options = *(const Options *)params->delegate->data_;
    for (int i = 0; i < nodes->size; i++) {
        if (!append_operation(context, kernel, nodes->data[i], params->output_tensors)) {
            kernel_free(context, kernel);
            return NULL;
        }
    }
    return kernel;
}

/* The first call that can report an error. */
static TfLiteStatus kernel_prepare(TfLiteContext *context, TfLiteNode *node) {
    if (node->user_data == NULL) {
        context->ReportError(context, "rounding_delegate: cannot set up a partition");
        return kTfLiteError;
    }
    return kTfLiteOk;
}

static void run_operation(const Kernel *kernel, const TfLiteContext *context,
                          const Operation *operation) {
    const Precision precision = kernel->options.precision;
    float *output = tensor_data(kernel, context, operation->output);
    if (operation->is_addition) {
        add(&operation->addition, precision,
            tensor_data(kernel, context, operation->inputs[LEFT]),
            tensor_data(kernel, context, operation->inputs[RIGHT]), output);
        return;
    }
    const int image = operation->inputs[IMAGE];
    round_weights(kernel, context, operation, false);
    round_all(precision, tensor_data(kernel, context, image), operation->rounded_image,
              element_count(&context->tensors[image]));
    convolve(&operation->convolution, precision, operation->rounded_image,
             operation->rounded_filter, operation->rounded_bias, output);
}

/* Whether this inference is one that fails. */
static bool strikes(const Kernel *kernel, const TfLiteContext *context) {
    const float wanted = kernel->options.fail_at;
    if (isnan(wanted)) {
        return true;
    }
    return tensor_data(kernel, context, kernel->operations[0].inputs[0])[0] == wanted;
}

static void hang(void) {
    for (;;) {
        pause();
    }
}

/* Takes address space that nobody gives back; no page of it is touched. */
static void leak(int megabytes) {
    static void *volatile lost; /* else the compiler may leave malloc out */
    lost = malloc((size_t)megabytes << 20);
    if (lost == NULL) {
        fprintf(stderr, "rounding_delegate: no memory for another %d MB\n", megabytes);
        abort();
    }
}

static TfLiteStatus kernel_invoke(TfLiteContext *context, TfLiteNode *node) {
    const Kernel *kernel = node->user_data;
    switch (strikes(kernel, context) ? kernel->options.fail : FAIL_NEVER) {
    case FAIL_INVOKE:
        context->ReportError(context, "rounding_delegate: invoke fails, as option fail asks");
        return kTfLiteError;
    case FAIL_ABORT:
        fprintf(stderr, "rounding_delegate: abort, as option fail asks\n");
        abort();
    case FAIL_HANG:
        fprintf(stderr, "rounding_delegate: hang, as option fail asks\n");
        hang();
        break;
    case FAIL_LEAK:
        leak(kernel->options.leak_mb > 0 ? kernel->options.leak_mb : DEFAULT_LEAK_MB);
        break;
    default:
        break;
    }
    for (int i = 0; i < kernel->operation_count; i++) {
        run_operation(kernel, context, &kernel->operations[i]);
    }
    return kTfLiteOk;
}

/* ---- The delegate: chooses nodes ------------------------------------------------------ */

static bool is_wanted(const Options *options, int32_t builtin_code) {
    switch (builtin_code) {
    case kTfLiteBuiltinAdd:
        return (options->ops & OP_ADD) != 0;
    case kTfLiteBuiltinConv2d:
        return (options->ops & OP_CONV) != 0;
    case kTfLiteBuiltinDepthwiseConv2d:
        return (options->ops & OP_DEPTHWISE) != 0;
    default:
        return false;
    }
}

/* Fills chosen, which has room for all nodes of the plan, with those that we take. */
static TfLiteStatus choose_nodes(TfLiteContext *context, const Options *options,
                                 const TfLiteIntArray *plan, TfLiteIntArray *chosen) {
    chosen->size = 0;
    for (int i = 0; i < plan->size && chosen->size < options->max_nodes; i++) {
        TfLiteNode *node;
        TfLiteRegistration *registration;
        const TfLiteStatus status =
            context->GetNodeAndRegistration(context, plan->data[i], &node, &registration);
        if (status != kTfLiteOk) {
            return status;
        }
        Operation operation;
        if (is_wanted(options, registration->builtin_code) &&
            read_operation(context, node, registration, &operation)) {
            chosen->data[chosen->size++] = plan->data[i];
        }
    }
    return kTfLiteOk;
}

static TfLiteStatus replace_nodes(TfLiteContext *context, const TfLiteIntArray *nodes,
                                  TfLiteDelegate *delegate) {
    const TfLiteRegistration registration = {
        .init = kernel_init,
        .free = kernel_free,
        .prepare = kernel_prepare,
        .invoke = kernel_invoke,
        .builtin_code = kTfLiteBuiltinDelegate,
        .custom_name = "RoundingDelegate",
        .version = 1,
    };
    return context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, nodes, delegate);
}

/* Called for each subgraph, and again when an input was resized. */
static TfLiteStatus delegate_prepare(TfLiteContext *context, TfLiteDelegate *delegate) {
    const Options *options = delegate->data_;
    if (options->fail == FAIL_PREPARE) {
        context->ReportError(context, "rounding_delegate: prepare fails, as option fail asks");
        return kTfLiteError;
    }
    TfLiteIntArray *plan;
    TfLiteStatus status = context->GetExecutionPlan(context, &plan);
    if (status != kTfLiteOk) {
        return status;
    }
    TfLiteIntArray *chosen = malloc(sizeof(TfLiteIntArray) + (size_t)plan->size * sizeof(int));
    if (chosen == NULL) {
        context->ReportError(context, "rounding_delegate: out of memory");
        return kTfLiteError;
    }
    status = choose_nodes(context, options, plan, chosen);
    if (status == kTfLiteOk) {
        status = replace_nodes(context, chosen, delegate);
    }
    free(chosen);
    return status;
}

/* ---- The two functions that TensorFlow Lite looks up by name -------------------------- */

void tflite_plugin_destroy_delegate(TfLiteDelegate *delegate) {
    if (delegate != NULL) {
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
    if (options.fail == FAIL_CREATE) {
        report(report_error, "rounding_delegate: create fails, as option fail asks");
        return NULL;
    }
    TfLiteDelegate *delegate = calloc(1, sizeof *delegate);
    Options *stored = malloc(sizeof *stored);
    if (delegate == NULL || stored == NULL) {
        free(delegate);
        free(stored);
        report(report_error, "rounding_delegate: out of memory");
        return NULL;
    }
    *stored = options;
    delegate->data_ = stored;
    delegate->Prepare = delegate_prepare;
    delegate->flags = kTfLiteDelegateFlagsNone;
    return delegate;
}
