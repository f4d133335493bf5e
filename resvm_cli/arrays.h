/* Arrays as functions of this package take them from Python: their format, gaps, alignment and whether
 * they can be written are checked, and each complaint names the array; lengths are for the functions.
 * Included once by each extension. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* An array that a function is given, and what is asked of it: items of one of two formats and of this
 * size, without gaps, and writable where it is written to. */
struct array {
    const char *name, *format, *other, *kind;
    size_t size;
    int written;
    Py_buffer buffer;
};

/* Formats as in Python's struct, where an int64 is `l` or `q`, by system. */
#define ARRAY(name, format, other, type, kind, written) \
    {name, format, other, kind, sizeof(type), written, {0}}
#define BYTES(name) ARRAY(name, "B", "B", unsigned char, "bytes", 0)
#define INT64(name) ARRAY(name, "l", "q", int64_t, "int64", 0)
#define INT32(name) ARRAY(name, "i", "l", int32_t, "int32", 0)
#define FLOAT64(name) ARRAY(name, "d", "d", double, "float64", 0)
#define FLOAT32(name) ARRAY(name, "f", "f", float, "float32", 0)
#define WRITTEN_INT64(name) ARRAY(name, "l", "q", int64_t, "int64", 1)
#define WRITTEN_INT32(name) ARRAY(name, "i", "l", int32_t, "int32", 1)
#define WRITTEN_UINT64(name) ARRAY(name, "L", "Q", uint64_t, "uint64", 1)
#define WRITTEN_FLOAT64(name) ARRAY(name, "d", "d", double, "float64", 1)
#define WRITTEN_FLOAT32(name) ARRAY(name, "f", "f", float, "float32", 1)
#define WRITTEN_BOOL(name) ARRAY(name, "?", "?", unsigned char, "bool", 1)

/* For PyArg_ParseTuple: hold an array's buffer, or say by its name what is wrong with it. */
static int take(PyObject *object, void *address)
{
    struct array *array = address;
    Py_buffer *buffer = &array->buffer;
    if (!object) { /* one behind it was refused */
        PyBuffer_Release(buffer);
        return 1;
    }
    if (PyObject_GetBuffer(object, buffer, PyBUF_RECORDS_RO) < 0) {
        PyErr_Format(PyExc_TypeError, "%s must be an array of %s", array->name, array->kind);
        return 0;
    }
    const char *format = buffer->format ? buffer->format : "B";
    if ((strcmp(format, array->format) != 0 && strcmp(format, array->other) != 0) ||
        (size_t)buffer->itemsize != array->size)
        PyErr_Format(PyExc_TypeError, "%s must be an array of %s, not of format '%s'", array->name,
                     array->kind, format);
    else if (!PyBuffer_IsContiguous(buffer, 'C'))
        PyErr_Format(PyExc_ValueError, "%s must be contiguous", array->name);
    else if ((uintptr_t)buffer->buf % (array->size < 8 ? array->size : 8))
        PyErr_Format(PyExc_ValueError, "%s must be aligned", array->name);
    else if (array->written && buffer->readonly)
        PyErr_Format(PyExc_ValueError, "%s must be writable", array->name);
    else
        return Py_CLEANUP_SUPPORTED;
    PyBuffer_Release(buffer);
    return 0;
}

static size_t count(const struct array *array) { return (size_t)array->buffer.len / array->size; }
