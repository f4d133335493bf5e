/* The arithmetic of pooled prediction that no numpy call does in one pass.
 *
 * A block holds kernel values, one line of `width` doubles for each support row: its columns are the
 * rows being judged. Each result is a sum in the order of the support rows, whatever its neighbours
 * are. The cores know nothing of Python, so that the fuzz target can include this file. */

#include <stddef.h>
#include <stdint.h>

/* One binary for every x86-64: the loader picks the widest vectors. No multiplication is fused with
 * an addition (-ffp-contract=off), so all give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(RESVM_WITHOUT_PYTHON)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

/* Dot products to rbf exponents: -gamma * max(0, |x|^2 + |s|^2 - 2 x.s), NaN kept. */
WIDEST static void fill_exponents(double *block, size_t height, size_t width,
                                  const double *row_norms, const double *support_norms,
                                  double gamma)
{
    for (size_t line = 0; line < height; line++) {
        double *at = block + line * width;
        const double norm = support_norms[line];
        for (size_t i = 0; i < width; i++) {
            double distance = (at[i] * -2.0 + row_norms[i]) + norm;
            at[i] = (distance < 0.0 ? 0.0 : distance) * -gamma;
        }
    }
}

/* sums[member] += coefficient * line, for each entry of each line. Entries of line i lie between
 * starts[i] and starts[i + 1]. Returns 0, with some sums unfinished, where an entry is out of range. */
WIDEST static int add_weighted(const double *block, size_t height, size_t width,
                               const int64_t *starts, const int32_t *members,
                               const double *coefficients, size_t n_entries, double *sums,
                               size_t n_members)
{
    for (size_t line = 0; line < height; line++) {
        const double *at = block + line * width;
        int64_t first = starts[line], last = starts[line + 1];
        if (first < 0 || last < first || (uint64_t)last > n_entries)
            return 0;
        for (int64_t entry = first; entry < last; entry++) {
            int32_t member = members[entry];
            if (member < 0 || (size_t)member >= n_members)
                return 0;
            double *sum = sums + (size_t)member * width;
            const double coefficient = coefficients[entry];
            for (size_t i = 0; i < width; i++)
                sum[i] += coefficient * at[i];
        }
    }
    return 1;
}

#ifndef RESVM_WITHOUT_PYTHON
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static size_t doubles(const Py_buffer *buffer) { return (size_t)buffer->len / sizeof(double); }

PyDoc_STRVAR(exponents_doc,
"exponents(block, row_norms, support_norms, gamma)\n"
"\n"
"Turn the dot products of a block into rbf exponents, in place.");

static PyObject *exponents(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer block, rows, supports;
    double gamma;
    if (!PyArg_ParseTuple(args, "w*y*y*d", &block, &rows, &supports, &gamma))
        return NULL;
    size_t width = doubles(&rows), height = doubles(&supports);
    int fits = width > 0 && height == doubles(&block) / width && doubles(&block) % width == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fill_exponents(block.buf, height, width, rows.buf, supports.buf, gamma);
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_ValueError, "the block does not fit the norms");
    }
    PyBuffer_Release(&block);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&supports);
    return fits ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(add_doc,
"add(block, starts, members, coefficients, sums, width)\n"
"\n"
"Add each line of a block, times its coefficients, to the sums of the members that use it.");

static PyObject *add(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer block, starts, members, coefficients, sums;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*n", &block, &starts, &members, &coefficients, &sums,
                          &width))
        return NULL;
    size_t n_starts = (size_t)starts.len / sizeof(int64_t), n_entries = doubles(&coefficients);
    if (n_entries > (size_t)members.len / sizeof(int32_t))
        n_entries = (size_t)members.len / sizeof(int32_t);
    int fits = width > 0 && n_starts > 0 && doubles(&block) % (size_t)width == 0 &&
               doubles(&sums) % (size_t)width == 0 &&
               doubles(&block) / (size_t)width == n_starts - 1;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = add_weighted(block.buf, n_starts - 1, (size_t)width, starts.buf, members.buf,
                            coefficients.buf, n_entries, sums.buf, doubles(&sums) / (size_t)width);
        Py_END_ALLOW_THREADS
    }
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the block does not fit its entries or the sums");
    PyBuffer_Release(&block);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&members);
    PyBuffer_Release(&coefficients);
    PyBuffer_Release(&sums);
    return fits ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {{"exponents", exponents, METH_VARARGS, exponents_doc},
                                {"add", add, METH_VARARGS, add_doc},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_pooled", "Arithmetic of pooled prediction.", 0, methods, NULL, NULL, NULL,
    NULL};

PyMODINIT_FUNC PyInit__pooled(void) { return PyModule_Create(&definition); }
#endif
