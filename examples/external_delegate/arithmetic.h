/* What the make-believe accelerator computes: float32 ADD, CONV_2D and DEPTHWISE_CONV_2D
 * whose operands and results are rounded to a shorter format. Sums are kept in float32, as
 * the accumulators of low-precision hardware usually are.
 *
 * Nothing in here knows TensorFlow Lite. In a delegate of your own, this is the file that
 * your hardware replaces.
 *
 * Images are NHWC. Rounding relies on IEEE 754 float32 arithmetic: do not build with
 * -ffast-math.
 */
#ifndef ARITHMETIC_H
#define ARITHMETIC_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float32");

typedef enum { PRECISION_FP32, PRECISION_FP16, PRECISION_BF16 } Precision;

/* The limits that a fused activation puts on a result. */
typedef struct {
    float low;
    float high;
} Range;

/* The axes of an image. */
enum { BATCH, HEIGHT, WIDTH, CHANNELS, RANK };

/* result = left + right, where axes of length 1 repeat along the result. */
typedef struct {
    int left[RANK];
    int right[RANK];
    int output[RANK];
    Range range;
} Addition;

/* CONV_2D or DEPTHWISE_CONV_2D. */
typedef struct {
    bool depthwise;
    int image[RANK];
    int filter[RANK]; /* OHWI for CONV_2D, 1HWO for DEPTHWISE_CONV_2D, as in the model */
    int output[RANK];
    int stride_height;
    int stride_width;
    int dilation_height;
    int dilation_width;
    int64_t padding_top;
    int64_t padding_left;
    Range range;
} Convolution;

/* The 16 bits that bfloat16 drops are rounded off, to nearest, ties to even. */
static float round_to_bf16(float value) {
    if (value != value) {
        return value;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7fffu + ((bits >> 16) & 1u);
    bits &= 0xffff0000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* The nearest number that IEEE binary16 can hold, ties to even, as float32. */
static float round_to_fp16(float value) {
    const uint32_t infinity = 0x7f800000u;
    const uint32_t overflow_from = 0x477ff000u; /* 65520: half way from 65504 to 65536 */
    const uint32_t normal_from = 0x38800000u;   /* 2^-14, the smallest normal binary16 */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits & 0x80000000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > infinity) {
        return value;
    }
    if (magnitude >= overflow_from) {
        magnitude = infinity;
    } else if (magnitude >= normal_from) {
        magnitude += 0xfffu + ((magnitude >> 13) & 1u);
        magnitude &= 0xffffe000u;
    } else {
        /* Subnormals are multiples of 2^-24, and 2^-24 is the step of float32 just above
         * 0.5: adding 0.5 rounds to that step. */
        float small;
        memcpy(&small, &magnitude, sizeof small);
        small = (small + 0.5f) - 0.5f;
        memcpy(&magnitude, &small, sizeof small);
    }
    bits = sign | magnitude;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static float round_to(Precision precision, float value) {
    switch (precision) {
    case PRECISION_FP16:
        return round_to_fp16(value);
    case PRECISION_BF16:
        return round_to_bf16(value);
    case PRECISION_FP32:
        break;
    }
    return value;
}

static void round_all(Precision precision, const float *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] = round_to(precision, from[i]);
    }
}

/* Written so that NaN stays NaN. */
static float clamp(Range range, float value) {
    if (value < range.low) {
        return range.low;
    }
    return value > range.high ? range.high : value;
}

/* The distance between neighbours along each axis; 0 where an axis of length 1 is repeated. */
static void broadcast_steps(const int shape[RANK], size_t steps[RANK]) {
    size_t step = 1;
    for (int axis = RANK - 1; axis >= 0; axis--) {
        steps[axis] = shape[axis] == 1 ? 0 : step;
        step *= (size_t)shape[axis];
    }
}

static size_t row_offset(const size_t steps[RANK], int n, int y, int x) {
    return (size_t)n * steps[BATCH] + (size_t)y * steps[HEIGHT] + (size_t)x * steps[WIDTH];
}

static void add(const Addition *addition, Precision precision, const float *left,
                const float *right, float *output) {
    size_t left_steps[RANK], right_steps[RANK];
    broadcast_steps(addition->left, left_steps);
    broadcast_steps(addition->right, right_steps);
    for (int n = 0; n < addition->output[BATCH]; n++) {
        for (int y = 0; y < addition->output[HEIGHT]; y++) {
            for (int x = 0; x < addition->output[WIDTH]; x++) {
                const float *a = left + row_offset(left_steps, n, y, x);
                const float *b = right + row_offset(right_steps, n, y, x);
                for (int c = 0; c < addition->output[CHANNELS]; c++) {
                    const float sum = round_to(precision, *a) + round_to(precision, *b);
                    *output = round_to(precision, clamp(addition->range, sum));
                    a += left_steps[CHANNELS];
                    b += right_steps[CHANNELS];
                    output++;
                }
            }
        }
    }
}

/* Rounds the weights of CONV_2D and reorders them from OHWI to HWIO, so that the innermost
 * loop of the convolution runs over neighbouring numbers. */
static void pack_filter(Precision precision, const int shape[RANK], const float *from, float *to) {
    const size_t outputs = (size_t)shape[0];
    const size_t taps = (size_t)shape[1] * (size_t)shape[2] * (size_t)shape[3];
    for (size_t output = 0; output < outputs; output++) {
        for (size_t tap = 0; tap < taps; tap++) {
            to[tap * outputs + output] = round_to(precision, from[output * taps + tap]);
        }
    }
}

/* Adds what one pixel contributes to all outputs of CONV_2D; weights are IO. */
static void add_pixel(int inputs, int outputs, const float *pixel, const float *weights,
                      float *restrict sums) {
    for (int input = 0; input < inputs; input++) {
        for (int output = 0; output < outputs; output++) {
            sums[output] += pixel[input] * weights[output];
        }
        weights += outputs;
    }
}

/* Adds what one pixel contributes to all outputs of DEPTHWISE_CONV_2D, where every input
 * channel has outputs of its own. */
static void add_pixel_depthwise(int inputs, int outputs, const float *pixel, const float *weights,
                                float *restrict sums) {
    const int outputs_per_input = outputs / inputs;
    for (int input = 0; input < inputs; input++) {
        for (int output = 0; output < outputs_per_input; output++) {
            sums[output] += pixel[input] * weights[output];
        }
        sums += outputs_per_input;
        weights += outputs_per_input;
    }
}

/* Adds up the window whose first tap lies on (top, left); taps outside the image count as 0. */
static void add_window(const Convolution *conv, const float *image, const float *filter,
                       int64_t top, int64_t left, float *sums) {
    const int inputs = conv->image[CHANNELS];
    const int outputs = conv->output[CHANNELS];
    const size_t weights_per_tap = (size_t)outputs * (conv->depthwise ? 1 : (size_t)inputs);
    for (int tap_y = 0; tap_y < conv->filter[HEIGHT]; tap_y++) {
        for (int tap_x = 0; tap_x < conv->filter[WIDTH]; tap_x++, filter += weights_per_tap) {
            const int64_t y = top + (int64_t)tap_y * conv->dilation_height;
            const int64_t x = left + (int64_t)tap_x * conv->dilation_width;
            if (y < 0 || y >= conv->image[HEIGHT] || x < 0 || x >= conv->image[WIDTH]) {
                continue;
            }
            const float *pixel = image + (y * conv->image[WIDTH] + x) * inputs;
            if (conv->depthwise) {
                add_pixel_depthwise(inputs, outputs, pixel, filter, sums);
            } else {
                add_pixel(inputs, outputs, pixel, filter, sums);
            }
        }
    }
}

/* Operands come rounded, the filter of CONV_2D packed. The output itself is the accumulator:
 * it starts as the bias and is clamped and rounded when its window is complete. */
static void convolve(const Convolution *conv, Precision precision, const float *image,
                     const float *filter, const float *bias, float *output) {
    const size_t image_size = (size_t)conv->image[HEIGHT] * (size_t)conv->image[WIDTH] *
                              (size_t)conv->image[CHANNELS];
    const size_t channels = (size_t)conv->output[CHANNELS];
    for (int n = 0; n < conv->output[BATCH]; n++) {
        for (int y = 0; y < conv->output[HEIGHT]; y++) {
            for (int x = 0; x < conv->output[WIDTH]; x++) {
                const int64_t top = (int64_t)y * conv->stride_height - conv->padding_top;
                const int64_t left = (int64_t)x * conv->stride_width - conv->padding_left;
                memcpy(output, bias, channels * sizeof *output);
                add_window(conv, image, filter, top, left, output);
                for (size_t c = 0; c < channels; c++) {
                    output[c] = round_to(precision, clamp(conv->range, output[c]));
                }
                output += channels;
            }
        }
        image += image_size;
    }
}

#endif
