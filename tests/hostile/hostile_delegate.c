/* A delegate that takes every node, gives zeros, and does harm once, at the moment that its options name.
 *
 * moment        load, create, soon (a thread of its own, after a while), prepare, allocate, first, later,
 *               fiftieth, between, free, destroy or exit; or each, which is at every inference
 * misbehaviour  see MISBEHAVIOURS; type4 makes outputs of that TfLiteType, from the fifth inference on
 *
 * A library is loaded before it has options: for the moment load both stand in the variable
 * EVALTOOLS_TEST_HARM, as in "load:abort".
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tflite_delegate_abi.h"

enum { LATER = 5, FIFTIETH = 50, SECONDS_OF_SLEEP = 1, MICROSECONDS_UNTIL_SOON = 300000, SECONDS_OF_A_LEFT_PROCESS = 600, LAST_DESCRIPTOR = 256, BYTES_OF_A_LEAK = 60 << 20 };

static char moment[32];
static char misbehaviour[32];
static int invocations;

/* ---- Misbehaviours -------------------------------------------------------------------- */

static void hang(void) {
    for (;;) {
        pause();
    }
}

static void talk(int descriptor) {
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (size_t written = 0; written < (size_t)300 << 20; written += sizeof line) {
        if (write(descriptor, line, sizeof line) < 0) {
            return;
        }
    }
}

/* Starts a process that goes on, and ends this one. */
static void leave_process(bool of_its_own_session) {
    if (fork() == 0) {
        if (of_its_own_session) {
            setsid();
        }
        sleep(SECONDS_OF_A_LEFT_PROCESS);
        _exit(0);
    }
    abort();
}

static void write_everywhere(const void *bytes, size_t count) {
    for (int descriptor = 3; descriptor < LAST_DESCRIPTOR; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0 && write(descriptor, bytes, count) < 0) {
            continue;
        }
    }
}

static void write_junk(void) {
    uint8_t junk[1000];
    for (size_t i = 0; i < sizeof junk; i++) {
        junk[i] = (uint8_t)(i * 37 + 11);
    }
    write_everywhere(junk, sizeof junk);
}

/* What a message of 4 GB, or of 1 TB, may begin with. */
static void state_huge_length(void) {
    const uint8_t head[12] = {0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 0, 0};
    write_everywhere(head, sizeof head);
}

static void close_all(void) {
    for (int descriptor = 0; descriptor < LAST_DESCRIPTOR; descriptor++) {
        close(descriptor);
    }
}

static void reopen_stdout(void) {
    FILE *file = tmpfile();
    if (file != NULL) {
        dup2(fileno(file), 1);
    }
    talk(1);
}

/* Memory that is used and never given back. */
static void leak(void) {
    static void *volatile leaked; /* so that a compiler does not leave it out */
    leaked = malloc(BYTES_OF_A_LEAK);
    if (leaked != NULL) {
        memset(leaked, 1, BYTES_OF_A_LEAK);
    }
}

static void do_harm(void) {
    const char *what = misbehaviour;
    if (strcmp(what, "abort") == 0) {
        abort();
    } else if (strcmp(what, "segv") == 0) {
        raise(SIGSEGV);
    } else if (strcmp(what, "exit0") == 0) {
        _exit(0);
    } else if (strcmp(what, "exit1") == 0) {
        _exit(1);
    } else if (strcmp(what, "hang") == 0) {
        hang();
    } else if (strcmp(what, "sleep") == 0) {
        sleep(SECONDS_OF_SLEEP);
    } else if (strcmp(what, "stdout") == 0) {
        talk(1);
    } else if (strcmp(what, "stderr") == 0) {
        talk(2);
    } else if (strcmp(what, "child") == 0) {
        leave_process(false);
    } else if (strcmp(what, "setsid") == 0) {
        leave_process(true);
    } else if (strcmp(what, "group") == 0) {
        kill(0, SIGKILL);
    } else if (strcmp(what, "close") == 0) {
        close_all();
    } else if (strcmp(what, "junk") == 0) {
        write_junk();
    } else if (strcmp(what, "length") == 0) {
        state_huge_length();
    } else if (strcmp(what, "fork") == 0) {
        fork();
    } else if (strcmp(what, "reopen") == 0) {
        reopen_stdout();
    } else if (strcmp(what, "leak") == 0) {
        leak();
    }
}

static bool refuses(const char *now) {
    return strcmp(moment, now) == 0 && strcmp(misbehaviour, "refuse") == 0;
}

static void at(const char *now) {
    if (strcmp(moment, now) == 0) {
        do_harm();
    }
}

/* ---- Moments -------------------------------------------------------------------------- */

__attribute__((constructor)) static void on_load(void) {
    const char *asked = getenv("EVALTOOLS_TEST_HARM");
    if (asked != NULL && strncmp(asked, "load:", 5) == 0) {
        snprintf(misbehaviour, sizeof misbehaviour, "%s", asked + 5);
        do_harm();
    }
}

static void on_exit_of_process(void) {
    at("exit");
}

static void *shortly_after(void *unused) {
    (void)unused;
    usleep(20000);
    at("between");
    return NULL;
}

static void *soon(void *unused) {
    (void)unused;
    usleep(MICROSECONDS_UNTIL_SOON);
    at("soon");
    return NULL;
}

static void start_thread(void *(*work)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) == 0) {
        pthread_detach(thread);
    }
}

static void *kernel_init(TfLiteContext *context, const char *buffer, size_t length) {
    (void)context;
    (void)length;
    const TfLiteDelegateParams *params = (const TfLiteDelegateParams *)(const void *)buffer;
    const TfLiteIntArray *outputs = params->output_tensors;
    const size_t size = sizeof(TfLiteIntArray) + (size_t)outputs->size * sizeof(int);
    TfLiteIntArray *kept = malloc(size);
    if (kept != NULL) {
        memcpy(kept, outputs, size);
    }
    return kept;
}

static void kernel_free(TfLiteContext *context, void *outputs) {
    (void)context;
    at("free");
    free(outputs);
}

static TfLiteStatus kernel_prepare(TfLiteContext *context, TfLiteNode *node) {
    (void)context;
    at("allocate");
    return node->user_data == NULL || refuses("allocate") ? kTfLiteError : kTfLiteOk;
}

static TfLiteStatus kernel_invoke(TfLiteContext *context, TfLiteNode *node) {
    const TfLiteIntArray *outputs = node->user_data;
    invocations++;
    at("each");
    if (invocations == 1) {
        at("first");
        if (strcmp(moment, "between") == 0) {
            start_thread(shortly_after);
        }
    }
    if (invocations == LATER) {
        at("later");
    }
    if (invocations == FIFTIETH) {
        at("fiftieth");
    }
    for (int i = 0; i < outputs->size; i++) {
        const TfLiteTensor *tensor = &context->tensors[outputs->data[i]];
        memset(tensor->data, 0, tensor->bytes);
        if (strncmp(misbehaviour, "type", 4) == 0 && invocations >= LATER) {
            context->tensors[outputs->data[i]].type = atoi(misbehaviour + 4);
        }
    }
    const char *now = invocations == 1 ? "first" : invocations == LATER ? "later" : "none";
    return refuses(now) ? kTfLiteError : kTfLiteOk;
}

static TfLiteStatus delegate_prepare(TfLiteContext *context, TfLiteDelegate *delegate) {
    at("prepare");
    TfLiteIntArray *plan;
    if (refuses("prepare") || context->GetExecutionPlan(context, &plan) != kTfLiteOk) {
        return kTfLiteError;
    }
    const TfLiteRegistration registration = {
        .init = kernel_init,
        .free = kernel_free,
        .prepare = kernel_prepare,
        .invoke = kernel_invoke,
        .builtin_code = kTfLiteBuiltinDelegate,
        .custom_name = "HostileDelegate",
        .version = 1,
    };
    return context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, plan, delegate);
}

void tflite_plugin_destroy_delegate(TfLiteDelegate *delegate) {
    at("destroy");
    free(delegate);
}

TfLiteDelegate *tflite_plugin_create_delegate(const char *const *keys, const char *const *values,
                                              size_t option_count,
                                              void (*report_error)(const char *message)) {
    for (size_t i = 0; i < option_count; i++) {
        char *option = strcmp(keys[i], "moment") == 0 ? moment : misbehaviour;
        snprintf(option, sizeof moment, "%s", values[i]);
    }
    at("create");
    TfLiteDelegate *delegate = refuses("create") ? NULL : calloc(1, sizeof *delegate);
    if (delegate == NULL) {
        report_error("hostile_delegate: create is refused");
        return NULL;
    }
    if (strcmp(moment, "soon") == 0) {
        start_thread(soon);
    }
    if (strcmp(moment, "exit") == 0) {
        atexit(on_exit_of_process);
    }
    delegate->Prepare = delegate_prepare;
    delegate->flags = kTfLiteDelegateFlagsNone;
    return delegate;
}
