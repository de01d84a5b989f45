/* Reads nodes of the graph: can we run this one, and what does it compute?
 *
 * The answer is no wherever there is a doubt. A node that is left alone is run by the CPU as
 * before; a node that is taken over and computed wrongly is worse than none.
 */
#ifndef OPERATION_H
#define OPERATION_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "arithmetic.h"
#include "tflite_delegate_abi.h"

enum { MAX_INPUTS = 3 };
enum { LEFT = 0, RIGHT = 1 };            /* the inputs of ADD */
enum { IMAGE = 0, FILTER = 1, BIAS = 2 }; /* the inputs of convolutions */

/* One node that we take over. */
typedef struct {
    bool is_addition;
    Addition addition;
    Convolution convolution;
    int inputs[MAX_INPUTS]; /* tensor indices */
    int output;

    /* Memory of our own. */
    float *output_data;     /* where the output stays within the partition, else NULL */
    float *rounded_image;   /* the operands of a convolution, rounded */
    float *rounded_filter;
    float *rounded_bias;    /* zeros where the node has no bias */
} Operation;

/* The tensor if it is dense float32 with a shape that stays as it is, else NULL. */
static const TfLiteTensor *plain_tensor(const TfLiteContext *context, int index) {
    if (index < 0 || (size_t)index >= context->tensors_size) {
        return NULL;
    }
    const TfLiteTensor *tensor = &context->tensors[index];
    if (tensor->type != kTfLiteFloat32 || tensor->allocation_type == kTfLiteDynamic ||
        tensor->sparsity != NULL || tensor->dims == NULL || tensor->dims->size > RANK) {
        return NULL;
    }
    size_t elements = 1;
    for (int axis = 0; axis < tensor->dims->size; axis++) {
        elements *= (size_t)tensor->dims->data[axis];
    }
    return elements > 0 && elements * sizeof(float) == tensor->bytes ? tensor : NULL;
}

static size_t element_count(const TfLiteTensor *tensor) { return tensor->bytes / sizeof(float); }

/* Shorter shapes get leading axes of length 1. */
static void read_shape(const TfLiteTensor *tensor, int shape[RANK]) {
    const int missing = RANK - tensor->dims->size;
    for (int axis = 0; axis < RANK; axis++) {
        shape[axis] = axis < missing ? 1 : tensor->dims->data[axis - missing];
    }
}

static bool read_activation(int32_t activation, Range *range) {
    switch (activation) {
    case kTfLiteActNone:
        *range = (Range){-INFINITY, INFINITY};
        return true;
    case kTfLiteActRelu:
        *range = (Range){0, INFINITY};
        return true;
    case kTfLiteActRelu6:
        *range = (Range){0, 6};
        return true;
    case kTfLiteActReluN1To1:
        *range = (Range){-1, 1};
        return true;
    default:
        return false;
    }
}

static bool broadcasts_to(const int from[RANK], const int to[RANK]) {
    for (int axis = 0; axis < RANK; axis++) {
        if (from[axis] != to[axis] && from[axis] != 1) {
            return false;
        }
    }
    return true;
}

static bool read_addition(const TfLiteContext *context, const TfLiteNode *node, Addition *add) {
    const TfLiteAddParams *params = node->builtin_data;
    const TfLiteTensor *output = plain_tensor(context, node->outputs->data[0]);
    const TfLiteTensor *left = plain_tensor(context, node->inputs->data[LEFT]);
    const TfLiteTensor *right = plain_tensor(context, node->inputs->data[RIGHT]);
    if (left == NULL || right == NULL || output == NULL) {
        return false;
    }
    read_shape(left, add->left);
    read_shape(right, add->right);
    read_shape(output, add->output);
    return broadcasts_to(add->left, add->output) && broadcasts_to(add->right, add->output) &&
           read_activation(params->activation, &add->range);
}

/* The parameters of DEPTHWISE_CONV_2D are those of CONV_2D and a depth multiplier, which the
 * shapes give as well. */
static TfLiteConvParams read_conv_params(const TfLiteNode *node, bool depthwise) {
    if (!depthwise) {
        return *(const TfLiteConvParams *)node->builtin_data;
    }
    const TfLiteDepthwiseConvParams *params = node->builtin_data;
    return (TfLiteConvParams){
        .padding = params->padding,
        .stride_width = params->stride_width,
        .stride_height = params->stride_height,
        .activation = params->activation,
        .dilation_width_factor = params->dilation_width_factor,
        .dilation_height_factor = params->dilation_height_factor,
    };
}

static bool are_valid(const TfLiteConvParams *params) {
    return (params->padding == kTfLitePaddingSame || params->padding == kTfLitePaddingValid) &&
           params->stride_width > 0 && params->stride_height > 0 &&
           params->dilation_width_factor > 0 && params->dilation_height_factor > 0;
}

/* Grouped convolutions, whose filters see a part of the channels only, are not ours. */
static bool shapes_agree(const Convolution *conv) {
    if (conv->image[BATCH] != conv->output[BATCH]) {
        return false;
    }
    if (conv->depthwise) {
        return conv->filter[0] == 1 && conv->filter[CHANNELS] == conv->output[CHANNELS] &&
               conv->output[CHANNELS] % conv->image[CHANNELS] == 0;
    }
    return conv->filter[0] == conv->output[CHANNELS] &&
           conv->filter[CHANNELS] == conv->image[CHANNELS];
}

/* SAME padding is shared between both sides; the side before the image gets the smaller half. */
static int64_t padding_before(int32_t padding, int image, int output, int filter, int stride,
                              int dilation) {
    if (padding == kTfLitePaddingValid) {
        return 0;
    }
    const int64_t covered = (int64_t)(output - 1) * stride + (int64_t)(filter - 1) * dilation + 1;
    return covered > image ? (covered - image) / 2 : 0;
}

static void read_geometry(const TfLiteConvParams *params, Convolution *conv) {
    conv->stride_height = params->stride_height;
    conv->stride_width = params->stride_width;
    conv->dilation_height = params->dilation_height_factor;
    conv->dilation_width = params->dilation_width_factor;
    conv->padding_top =
        padding_before(params->padding, conv->image[HEIGHT], conv->output[HEIGHT],
                       conv->filter[HEIGHT], conv->stride_height, conv->dilation_height);
    conv->padding_left =
        padding_before(params->padding, conv->image[WIDTH], conv->output[WIDTH],
                       conv->filter[WIDTH], conv->stride_width, conv->dilation_width);
}

static bool bias_fits(const TfLiteContext *context, int index, int channels) {
    if (index == kTfLiteOptionalTensor) {
        return true;
    }
    const TfLiteTensor *bias = plain_tensor(context, index);
    return bias != NULL && element_count(bias) == (size_t)channels;
}

static bool read_convolution(const TfLiteContext *context, const TfLiteNode *node, int bias,
                             Convolution *conv) {
    const TfLiteConvParams params = read_conv_params(node, conv->depthwise);
    const TfLiteTensor *image = plain_tensor(context, node->inputs->data[IMAGE]);
    const TfLiteTensor *filter = plain_tensor(context, node->inputs->data[FILTER]);
    const TfLiteTensor *output = plain_tensor(context, node->outputs->data[0]);
    if (image == NULL || filter == NULL || output == NULL || image->dims->size != RANK ||
        filter->dims->size != RANK || output->dims->size != RANK || !are_valid(&params)) {
        return false;
    }
    read_shape(image, conv->image);
    read_shape(filter, conv->filter);
    read_shape(output, conv->output);
    read_geometry(&params, conv);
    return shapes_agree(conv) && bias_fits(context, bias, conv->output[CHANNELS]) &&
           read_activation(params.activation, &conv->range);
}

/* Fills in the operation; false if the node is not one that we can run. */
static bool read_operation(const TfLiteContext *context, const TfLiteNode *node,
                           const TfLiteRegistration *registration, Operation *operation) {
    *operation = (Operation){.inputs = {kTfLiteOptionalTensor, kTfLiteOptionalTensor,
                                        kTfLiteOptionalTensor}};
    if (node->inputs->size < 2 || node->inputs->size > MAX_INPUTS || node->outputs->size != 1 ||
        node->builtin_data == NULL) {
        return false;
    }
    for (int i = 0; i < node->inputs->size; i++) {
        operation->inputs[i] = node->inputs->data[i];
    }
    operation->output = node->outputs->data[0];
    operation->is_addition = registration->builtin_code == kTfLiteBuiltinAdd;
    if (operation->is_addition) {
        return read_addition(context, node, &operation->addition);
    }
    operation->convolution.depthwise = registration->builtin_code == kTfLiteBuiltinDepthwiseConv2d;
    return read_convolution(context, node, operation->inputs[BIAS], &operation->convolution);
}

#endif
