/* Loaded before the C library into a process under test: makes writes and syncs of one file fail, or wait.
 *
 * FAULTY_DISK names a directory; FAULTY_DISK_FILE is what a path must contain to be concerned. While the directory holds
 *   hold        a sync waits;
 *   sync        its text "ERRNO COUNT AFTER": so many syncs fail after so many that don't;
 *   write       likewise writes; a negative COUNT for ever, COUNT 0 every other one;
 *   short       every write stops half-way.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int concerned(int fd) {
    const char *part = getenv("FAULTY_DISK_FILE");
    char link[64], path[4096];
    if (!part || !getenv("FAULTY_DISK")) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, part) != NULL;
}

static void name_of(char *name, size_t size, const char *what) {
    snprintf(name, size, "%s/%s", getenv("FAULTY_DISK"), what);
}

static int is_set(const char *what) {
    char name[4096];
    name_of(name, sizeof name, what);
    return access(name, F_OK) == 0;
}

/* The errno of the fault that is due, 0 when there is none; counts it down. */
static int due(const char *what) {
    static unsigned calls;
    char name[4096], text[64];
    int number = 0, count = 0, after = 0, left;
    name_of(name, sizeof name, what);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    if (length > 0) {
        text[length] = 0;
        sscanf(text, "%d %d %d", &number, &count, &after);
    }
    left = after ? count : count - 1;
    if (after > 0 || count > 1) {
        length = snprintf(text, sizeof text, "%d %d %d", number, left, after ? after - 1 : 0);
        if (ftruncate(fd, 0) != 0 || pwrite(fd, text, length, 0) != length) number = EIO;
        if (after > 0) number = 0;
    } else if (count == 1) {
        unlink(name);
    } else if (count == 0 && ++calls % 2) {
        number = 0;
    }
    close(fd);
    return number;
}

static int sync_fault(int fd) {
    if (!concerned(fd)) return 0;
    while (is_set("hold")) usleep(1000);
    return due("sync");
}

#define REAL(name, type) static type real; if (!real) real = (type)dlsym(RTLD_NEXT, name)

typedef int (*sync_fn)(int);
typedef ssize_t (*pwrite_fn)(int, const void *, size_t, off_t);
typedef ssize_t (*writev_fn)(int, const struct iovec *, int);

int fdatasync(int fd) {
    REAL("fdatasync", sync_fn);
    int fault = sync_fault(fd);
    if (fault) { errno = fault; return -1; }
    return real(fd);
}

int fsync(int fd) {
    REAL("fsync", sync_fn);
    int fault = sync_fault(fd);
    if (fault) { errno = fault; return -1; }
    return real(fd);
}

static ssize_t faulty_pwrite(pwrite_fn real, int fd, const void *data, size_t size, off_t at) {
    if (concerned(fd)) {
        int fault = due("write");
        if (fault) { errno = fault; return -1; }
        if (size > 1 && is_set("short")) size /= 2;
    }
    return real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL("pwrite", pwrite_fn);
    return faulty_pwrite(real, fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    REAL("pwrite64", pwrite_fn);
    return faulty_pwrite(real, fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL("writev", writev_fn);
    if (concerned(fd)) {
        int fault = due("write");
        if (fault) { errno = fault; return -1; }
        if (is_set("short")) return write(fd, parts[0].iov_base, parts[0].iov_len / 2);
    }
    return real(fd, parts, count);
}
