/* The part of TensorFlow Lite's C interface that a delegate needs.
 *
 * The wheels of tflite_runtime and ai-edge-litert ship no C headers. A delegate needs few
 * of them: it is called with pointers to structs, and everything it asks of TensorFlow Lite
 * goes through function pointers in TfLiteContext, so there is nothing to link against.
 *
 * Names and field order are those of tensorflow/lite/core/c/common.h and builtin_op_data.h.
 * The layout is the same from TensorFlow Lite 2.14 to LiteRT 2.3; one binary serves both.
 */
#ifndef TFLITE_DELEGATE_ABI_H
#define TFLITE_DELEGATE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t TfLiteStatus;
enum { kTfLiteOk = 0, kTfLiteError = 1 };

/* TfLiteType: the type of a tensor's elements. */
enum {
    kTfLiteFloat32 = 1,
    kTfLiteInt32 = 2,
    kTfLiteUInt8 = 3,
    kTfLiteInt64 = 4,
    kTfLiteInt16 = 7,
    kTfLiteInt8 = 9
};

/* TfLiteAllocationType: who owns a tensor's memory and when its content is known. */
enum {
    kTfLiteMmapRo = 1,  /* a constant of the model: data is valid from the start */
    kTfLiteArenaRw = 2, /* computed in every inference, in memory that is planned before */
    kTfLiteDynamic = 4  /* shape and memory are only known while the model runs */
};

/* BuiltinOperator of the model schema. */
enum {
    kTfLiteBuiltinAdd = 0,
    kTfLiteBuiltinConv2d = 3,
    kTfLiteBuiltinDepthwiseConv2d = 4,
    kTfLiteBuiltinDelegate = 51,
    kTfLiteBuiltinIf = 118,
    kTfLiteBuiltinWhile = 119,
    kTfLiteBuiltinCallOnce = 129
};

/* TfLiteFusedActivation */
enum { kTfLiteActNone = 0, kTfLiteActRelu = 1, kTfLiteActReluN1To1 = 2, kTfLiteActRelu6 = 3 };

/* TfLitePadding */
enum { kTfLitePaddingSame = 1, kTfLitePaddingValid = 2 };

/* TfLiteDelegate.flags. Without flags TensorFlow Lite knows every shape before it calls the
 * delegate, and calls it again when an input is resized. */
enum { kTfLiteDelegateFlagsNone = 0 };

/* Optional inputs that a node does not have carry this index. */
enum { kTfLiteOptionalTensor = -1 };

typedef struct TfLiteContext TfLiteContext;
typedef struct TfLiteDelegate TfLiteDelegate;

/* A length followed by that many integers: a shape, or a list of tensor or node indices. */
typedef struct {
    int size;
    int data[];
} TfLiteIntArray;

typedef struct {
    int32_t type; /* TfLiteType */
    void *data;   /* NULL while TensorFlow Lite has given the tensor no memory */
    TfLiteIntArray *dims;
    struct {
        float scale;
        int32_t zero_point;
    } params;
    int32_t allocation_type; /* TfLiteAllocationType */
    size_t bytes;
    const void *allocation;
    const char *name;
    TfLiteDelegate *delegate;
    int buffer_handle;
    bool data_is_stale;
    bool is_variable;
    struct {
        int32_t type;
        void *params;
    } quantization;
    void *sparsity; /* NULL for a dense tensor */
    const TfLiteIntArray *dims_signature;
} TfLiteTensor;

/* One node of the graph. Nodes move in memory when a delegate adds nodes of its own: copy
 * what is needed, do not keep the pointer. */
typedef struct {
    TfLiteIntArray *inputs;  /* tensor indices */
    TfLiteIntArray *outputs; /* tensor indices */
    TfLiteIntArray *intermediates;
    TfLiteIntArray *temporaries;
    void *user_data;    /* what TfLiteRegistration.init returned */
    void *builtin_data; /* one of the TfLite...Params below, by builtin code */
    const void *custom_initial_data;
    int custom_initial_data_size;
    TfLiteDelegate *delegate;
    bool might_have_side_effect;
} TfLiteNode;

/* The functions of an op. A delegate hands over one registration; it is used for every
 * DELEGATE node that takes the place of a partition. */
typedef struct {
    void *(*init)(TfLiteContext *context, const char *buffer, size_t length);
    void (*free)(TfLiteContext *context, void *user_data);
    TfLiteStatus (*prepare)(TfLiteContext *context, TfLiteNode *node);
    TfLiteStatus (*invoke)(TfLiteContext *context, TfLiteNode *node);
    const char *(*profiling_string)(const TfLiteContext *context, const TfLiteNode *node);
    int32_t builtin_code;
    const char *custom_name;
    int version;
    void *registration_external;
    void *(*async_kernel)(TfLiteContext *context, TfLiteNode *node);
    uint64_t inplace_operator; /* read by newer versions only; 0: outputs never share inputs */
} TfLiteRegistration;

/* What init of a delegate's registration gets as its buffer: the partition it is to run. */
typedef struct {
    TfLiteDelegate *delegate;
    TfLiteIntArray *nodes_to_replace; /* node indices, in execution order */
    TfLiteIntArray *input_tensors;
    TfLiteIntArray *output_tensors; /* tensors that the rest of the graph reads */
} TfLiteDelegateParams;

/* Only the beginning of the real struct: never take its size, never make one. */
struct TfLiteContext {
    size_t tensors_size;
    TfLiteStatus (*GetExecutionPlan)(TfLiteContext *context, TfLiteIntArray **plan);
    TfLiteTensor *tensors; /* moves when tensors are added: read it anew in every call */
    void *impl_;
    TfLiteStatus (*ResizeTensor)(TfLiteContext *context, TfLiteTensor *tensor,
                                 TfLiteIntArray *new_size);
    void (*ReportError)(TfLiteContext *context, const char *format, ...);
    TfLiteStatus (*AddTensors)(TfLiteContext *context, int count, int *first_new_index);
    TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext *context, int node_index,
                                           TfLiteNode **node, TfLiteRegistration **registration);
    TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext *context,
                                                          TfLiteRegistration registration,
                                                          const TfLiteIntArray *nodes_to_replace,
                                                          TfLiteDelegate *delegate);
};

struct TfLiteDelegate {
    void *data_; /* the delegate's own */
    TfLiteStatus (*Prepare)(TfLiteContext *context, TfLiteDelegate *delegate);
    void *CopyFromBufferHandle;
    void *CopyToBufferHandle;
    void *FreeBufferHandle;
    int64_t flags;
    void *opaque_delegate_builder;
};

typedef struct {
    int32_t activation;
    bool pot_scale_int16;
} TfLiteAddParams;

typedef struct {
    int32_t padding;
    int stride_width;
    int stride_height;
    int32_t activation;
    int dilation_width_factor;
    int dilation_height_factor;
} TfLiteConvParams;

typedef struct {
    int32_t padding;
    int stride_width;
    int stride_height;
    int depth_multiplier;
    int32_t activation;
    int dilation_width_factor;
    int dilation_height_factor;
} TfLiteDepthwiseConvParams;

/* TfLiteContext.tensors is an array, so a wrong size of the struct would go unnoticed until
 * the second tensor; and TfLiteRegistration is passed by value. The layouts are those of 64-bit
 * systems; on 32-bit ones they differ between versions of TensorFlow Lite. */
_Static_assert(sizeof(void *) == 8, "this header describes 64-bit systems only");
_Static_assert(sizeof(TfLiteTensor) == 112, "layout of TfLiteTensor");
_Static_assert(sizeof(TfLiteNode) == 80, "layout of TfLiteNode");
_Static_assert(sizeof(TfLiteRegistration) == 88, "layout of TfLiteRegistration");
_Static_assert(sizeof(TfLiteDelegate) == 56, "layout of TfLiteDelegate");

#endif
