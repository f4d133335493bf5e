/* Functions that Python calls with arrays and numbers.
 *
 * Each function is declared with a table of parameters that is used to check its arguments: the format,
 * contiguity, alignment and writability of arrays. Every error message names the parameter. The
 * function's body runs without the GIL; it checks the lengths, computes, and returns NULL or an error
 * message, which becomes a ValueError ("out of memory" becomes a MemoryError). Each extension includes this
 * file once. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { BYTES, BOOL, INT32, INT64, UINT64, FLOAT32, FLOAT64, WHOLE, REAL, FLAG, DICT };

/* The formats of array items, as in Python's struct module, where an int64 is `l` or `q`. */
static const struct {
    const char *name, *format, *other_format;
    size_t size;
} array_kinds[] = {[BYTES] = {"bytes", "B", "B", 1},     [BOOL] = {"bool", "?", "?", 1},
                   [INT32] = {"int32", "i", "l", 4},     [INT64] = {"int64", "l", "q", 8},
                   [UINT64] = {"uint64", "L", "Q", 8},   [FLOAT32] = {"float32", "f", "f", 4},
                   [FLOAT64] = {"float64", "d", "d", 8}};

struct parameter {
    enum kind kind;
    const char *name;
    int is_written, is_optional;
};

#define IN(kind, name) {kind, name, 0, 0}
#define OUT(kind, name) {kind, name, 1, 0}
#define OPTIONAL(kind, name) {kind, name, 0, 1}

struct argument {
    void *data; /* for an array or a dict; NULL if an optional array is None */
    size_t count;
    int64_t whole; /* an integer or a flag */
    double real;
    Py_buffer buffer;
};

#define MAX_PARAMETERS 12
#define MAX_RESULTS 9

/* A call returns bytes if its body sets `text`, which is then freed. Otherwise, it
 * returns the numbers in `results`, or None if there are none. The body may reacquire the GIL
 * through `state`. */
struct call {
    struct argument given[MAX_PARAMETERS];
    PyThreadState *state;
    int64_t results[MAX_RESULTS];
    size_t n_results;
    char *text;
    size_t length;
};

#define RESULTS(call, ...)                                            \
    do {                                                              \
        const int64_t found_[] = {__VA_ARGS__};                       \
        memcpy((call)->results, found_, sizeof found_);               \
        (call)->n_results = sizeof found_ / sizeof *found_;           \
    } while (0)

static int take_array(const struct parameter *parameter, PyObject *object, struct argument *argument)
{
    const char *name = parameter->name, *kind = array_kinds[parameter->kind].name;
    const size_t size = array_kinds[parameter->kind].size;
    Py_buffer *buffer = &argument->buffer;
    if (parameter->is_optional && object == Py_None)
        return 1;
    if (PyObject_GetBuffer(object, buffer, PyBUF_RECORDS_RO) < 0) {
        PyErr_Format(PyExc_TypeError, "%s must be an array of %s", name, kind);
        return 0;
    }
    const char *format = buffer->format ? buffer->format : "B";
    if ((strcmp(format, array_kinds[parameter->kind].format) != 0 &&
         strcmp(format, array_kinds[parameter->kind].other_format) != 0) ||
        (size_t)buffer->itemsize != size)
        PyErr_Format(PyExc_TypeError, "%s must be an array of %s, not of format '%s'", name, kind,
                     format);
    else if (!PyBuffer_IsContiguous(buffer, 'C'))
        PyErr_Format(PyExc_ValueError, "%s must be contiguous", name);
    else if ((uintptr_t)buffer->buf % size)
        PyErr_Format(PyExc_ValueError, "%s must be aligned", name);
    else if (parameter->is_written && buffer->readonly)
        PyErr_Format(PyExc_ValueError, "%s must be writable", name);
    else {
        argument->data = buffer->buf;
        argument->count = (size_t)buffer->len / size;
        return 1;
    }
    return 0;
}

static int take(const struct parameter *parameter, PyObject *object, struct argument *argument)
{
    switch (parameter->kind) {
    case WHOLE:
        argument->whole = PyLong_AsLongLong(object);
        break;
    case REAL:
        argument->real = PyFloat_AsDouble(object);
        break;
    case FLAG:
        argument->whole = PyObject_IsTrue(object);
        break;
    case DICT:
        if (!PyDict_Check(object))
            PyErr_Format(PyExc_TypeError, "%s must be a dict", parameter->name);
        argument->data = object;
        break;
    default:
        return take_array(parameter, object, argument);
    }
    return !PyErr_Occurred();
}

static PyObject *result_of(const struct call *call)
{
    if (call->text)
        return PyBytes_FromStringAndSize(call->text, (Py_ssize_t)call->length);
    if (call->n_results == 0)
        return Py_NewRef(Py_None);
    if (call->n_results == 1)
        return PyLong_FromLongLong(call->results[0]);
    PyObject *tuple = PyTuple_New((Py_ssize_t)call->n_results);
    for (size_t i = 0; tuple && i < call->n_results; i++) {
        PyObject *number = PyLong_FromLongLong(call->results[i]);
        if (!number || PyTuple_SetItem(tuple, (Py_ssize_t)i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *answer(const char *(*body)(struct call *), const struct parameter *parameters,
                        size_t n_parameters, PyObject *args)
{
    struct call call = {0};
    PyObject *result = NULL;
    size_t taken = 0;
    if ((size_t)PyTuple_Size(args) != n_parameters)
        return PyErr_Format(PyExc_TypeError, "%zu arguments expected", n_parameters);
    while (taken < n_parameters &&
           take(&parameters[taken], PyTuple_GetItem(args, (Py_ssize_t)taken), &call.given[taken]))
        taken++;
    if (taken == n_parameters) {
        call.state = PyEval_SaveThread();
        const char *complaint = body(&call);
        PyEval_RestoreThread(call.state);
        if (!complaint)
            result = result_of(&call);
        else if (strcmp(complaint, "out of memory") == 0)
            PyErr_NoMemory();
        else
            PyErr_SetString(PyExc_ValueError, complaint);
        free(call.text);
    }
    for (size_t i = 0; i < n_parameters; i++)
        PyBuffer_Release(&call.given[i].buffer); /* does nothing if the buffer is empty */
    return result;
}

/* FUNCTION(name, parameters...) { body }, and METHOD(name, doc) for the module's table. */
#define FUNCTION(name, ...)                                                                      \
    static const char *run_##name(struct call *call);                                            \
    static PyObject *call_##name(PyObject *Py_UNUSED(module), PyObject *args)                    \
    {                                                                                            \
        static const struct parameter parameters[] = {__VA_ARGS__};                              \
        return answer(run_##name, parameters, sizeof parameters / sizeof *parameters, args);     \
    }                                                                                            \
    static const char *run_##name(struct call *call)

#define METHOD(name, doc) {#name, call_##name, METH_VARARGS, doc}
