/* Loaded before libc (LD_PRELOAD): injects a fault at the FAULT_AT-th call that changes a file.
 *
 * FAULT_KIND is kill, term, eio or enospc; a signal is sent after the call, and an error
 * is returned instead of making it. Only calls that change something below FAULT_UNDER are counted,
 * not stdout, stderr or what a library writes elsewhere. FAULT_TOLD is a file that is created when
 * the fault occurs, and contains "removal" if the call would have removed something. FAULT_CALLS is a
 * file that grows by one byte with every counted call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int counted, full, removes;
static long calls;

static int under(const char *path)
{
    const char *place = getenv("FAULT_UNDER");
    char whole[PATH_MAX];
    if (!place || !path)
        return 0;
    if (path[0] != '/') {
        if (!getcwd(whole, sizeof whole - 1) || strlen(whole) + strlen(path) + 2 > sizeof whole)
            return 0;
        strcat(strcat(whole, "/"), path);
        path = whole;
    }
    return strncmp(path, place, strlen(place)) == 0;
}

static int file_under(int descriptor)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    return under(path);
}

/* 0 to continue, 1 to signal afterwards, -1 to fail now */
static int fault(void)
{
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND"), *told = getenv("FAULT_TOLD");
    const char *tally = getenv("FAULT_CALLS");
    if (tally) {
        int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
        int counting = real(tally, O_CREAT | O_WRONLY | O_APPEND, 0600);
        if (counting >= 0) {
            ssize_t grown = write(counting, ".", 1);
            (void)grown;
            close(counting);
        }
    }
    if (!at || !kind || ++calls != atol(at) || counted)
        return 0;
    counted = 1;
    if (told) {
        int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
        int made = real(told, O_CREAT | O_WRONLY, 0600);
        if (made >= 0) {
            ssize_t said = removes ? write(made, "removal", 7) : 0;
            (void)said;
            close(made);
        }
    }
    if (strcmp(kind, "eio") == 0) {
        errno = EIO;
        return -1;
    }
    if (strcmp(kind, "enospc") == 0) {
        errno = ENOSPC;
        return -1;
    }
    return 1;
}

static void strike(void)
{
    int saved = errno;
    kill(getpid(), strcmp(getenv("FAULT_KIND"), "kill") == 0 ? SIGKILL : SIGTERM);
    errno = saved;
}

#define MEETS(condition, call)               \
    int met = (condition) ? fault() : 0;     \
    removes = 0;                             \
    if (met < 0)                             \
        return -1;                           \
    __typeof__(call) result = (call);        \
    if (met > 0)                             \
        strike();                            \
    return result;

#define REAL(name, type) __typeof__(type) *real = (__typeof__(type) *)dlsym(RTLD_NEXT, name)

static int opened(const char *name, int directory, const char *path, int flags, mode_t mode)
{
    int changes = (flags & (O_CREAT | O_TRUNC)) != 0 && (directory == AT_FDCWD ? under(path) : file_under(directory));
    if (directory == AT_FDCWD && strncmp(name, "openat", 6) != 0) {
        REAL(name, int(const char *, int, ...));
        MEETS(changes, real(path, flags, mode))
    }
    REAL(name, int(int, const char *, int, ...));
    MEETS(changes, real(directory, path, flags, mode))
}

#define OPEN(name)                                       \
    int name(const char *path, int flags, ...)           \
    {                                                    \
        va_list more;                                    \
        va_start(more, flags);                           \
        mode_t mode = va_arg(more, mode_t);              \
        va_end(more);                                    \
        return opened(#name, AT_FDCWD, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int descriptor, const void *data, size_t size)
{
    REAL("write", ssize_t(int, const void *, size_t));
    int here = file_under(descriptor);
    if (here && full) {
        errno = ENOSPC;
        return -1;
    }
    int met = here ? fault() : 0;
    if (met < 0) { /* the disk fills up in the middle of a write, and stays full */
        full = errno == ENOSPC;
        return full && size > 1 ? real(descriptor, data, size / 2) : -1;
    }
    ssize_t result = real(descriptor, data, met > 0 && size > 1 ? size / 2 : size);
    if (met > 0)
        strike();
    return result;
}

int rename(const char *from, const char *to)
{
    REAL("rename", int(const char *, const char *));
    MEETS(under(to), real(from, to))
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    REAL("renameat", int(int, const char *, int, const char *));
    MEETS(under(to), real(from_directory, from, to_directory, to))
}

int mkdir(const char *path, mode_t mode)
{
    REAL("mkdir", int(const char *, mode_t));
    MEETS(under(path), real(path, mode))
}

int unlink(const char *path)
{
    REAL("unlink", int(const char *));
    removes = 1;
    MEETS(under(path), real(path))
}

int unlinkat(int directory, const char *path, int flags)
{
    REAL("unlinkat", int(int, const char *, int));
    removes = 1;
    MEETS(directory == AT_FDCWD ? under(path) : file_under(directory), real(directory, path, flags))
}

int rmdir(const char *path)
{
    REAL("rmdir", int(const char *));
    removes = 1;
    MEETS(under(path), real(path))
}

int fsync(int descriptor)
{
    REAL("fsync", int(int));
    MEETS(file_under(descriptor), real(descriptor))
}

int chmod(const char *path, mode_t mode)
{
    REAL("chmod", int(const char *, mode_t));
    MEETS(under(path), real(path, mode))
}

int truncate64(const char *path, off64_t length)
{
    REAL("truncate64", int(const char *, off64_t));
    MEETS(under(path), real(path, length))
}

int ftruncate64(int descriptor, off64_t length)
{
    REAL("ftruncate64", int(int, off64_t));
    MEETS(file_under(descriptor), real(descriptor, length))
}
