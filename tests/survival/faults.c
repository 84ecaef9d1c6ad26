/* This file stands between a process and the C library's file-system calls, and counts those below one folder.
 *
 * It is preloaded (LD_PRELOAD), so that it sees what Python, Arrow and any other library writes. The n-th call can be
 * made to fail or to end the process, and every call can be recorded, in order and with what was written.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, FAIL, SHORT, FULL, EXIT, TORN, LOST }; /* as in faults.py */

static char root[PATH_MAX];
static size_t root_size;
static int fault = NOTHING, fault_errno, sticky, log_descriptor = -1;
static long wanted = -1, seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* Faults begin with the n-th call below `folder`; n = 0 for none. `sticky` lets every later call fail as well. */
void survival_arm(const char *folder, long n, int what, int number, int stays) {
    snprintf(root, sizeof root, "%s", folder);
    root_size = strlen(root);
    wanted = n > 0 ? n : LONG_MAX, fault = what, fault_errno = number, sticky = stays, seen = 0;
}

long survival_seen(void) { return seen; }

/* Calls are written to this descriptor from now on. */
void survival_record(int descriptor) { log_descriptor = descriptor; }

static int below(const char *path) {
    return root_size && !strncmp(path, root, root_size) && (!path[root_size] || path[root_size] == '/');
}

static const char *full(int folder, const char *path, char *room) {
    if (path[0] == '/') return path;
    char place[64], base[PATH_MAX];
    ssize_t size;
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return path;
    } else {
        snprintf(place, sizeof place, "/proc/self/fd/%d", folder);
        if ((size = readlink(place, base, sizeof base - 1)) < 0) return path;
        base[size] = 0;
    }
    if (snprintf(room, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return path;
    return room;
}

static const char *of(int descriptor, char *room) {
    char place[64];
    snprintf(place, sizeof place, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(place, room, PATH_MAX - 1);
    if (size < 0) return "";
    room[size] = 0;
    return room;
}

/* One record: a line "what inode offset size path path", then `size` bytes. */
static void record(const char *what, long inode, long offset, const void *data, long size, const char *a, const char *b) {
    if (log_descriptor < 0) return;
    ssize_t (*put)(int, const void *, size_t) = REAL(write);
    char line[2 * PATH_MAX + 128];
    int n = snprintf(line, sizeof line, "%s\t%ld\t%ld\t%ld\t%s\t%s\n", what, inode, offset, size, a, b);
    if (put(log_descriptor, line, n) != n || (size && put(log_descriptor, data, size) != size)) abort();
}

/* A call that the system itself refused: counted, and without effect. */
static void refused(void) { record("none", 0, 0, NULL, 0, "", ""); }

void survival_mark(const char *name) {
    pthread_mutex_lock(&lock);
    record("mark", 0, 0, NULL, 0, name, "");
    pthread_mutex_unlock(&lock);
}

static long inode_of(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) ? 0 : (long)found.st_ino;
}

/* What is to happen to the call that is being counted now. Called with the lock held. */
static int step(void) {
    seen++;
    if (seen < wanted || (seen > wanted && !sticky)) return NOTHING;
    int now = seen > wanted && fault != LOST ? FAIL : fault;
    if (now == EXIT) _exit(70);
    return now;
}

/* The answer of a call without data: `call` is made unless it is to fail before it takes effect. */
#define CALL(is_ours, call, is_good, ...)                              \
    do {                                                               \
        if (!(is_ours)) return (call);                                 \
        pthread_mutex_lock(&lock);                                     \
        int now = step(), answer = -1, number = fault_errno;           \
        if (now == TORN) _exit(70);                                    \
        if (now == NOTHING || now == LOST || now == SHORT) {           \
            answer = (call);                                           \
            number = now == LOST ? fault_errno : errno;                \
            (is_good) ? record(__VA_ARGS__) : refused();               \
            if (now == LOST) answer = -1;                              \
        }                                                              \
        pthread_mutex_unlock(&lock);                                   \
        errno = number;                                                \
        return answer;                                                 \
    } while (0)

static int opened(int folder, const char *path, int flags, mode_t mode) {
    int (*call)(int, const char *, int, ...) = REAL(openat);
    char room[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE) return call(folder, path, flags, mode);
    const char *place = full(folder, path, room);
    if (!below(place)) return call(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    int now = step(), answer = -1, number = fault_errno;
    if (now == TORN) _exit(70);
    if (now == NOTHING || now == SHORT || now == LOST) {
        int is_there = access(place, F_OK) == 0;
        answer = call(folder, path, flags, mode);
        number = errno;
        if (answer < 0) refused();
        else record(is_there ? "reopen" : "create", inode_of(answer), flags & O_TRUNC, NULL, 0, place, "");
        if (now == LOST && answer >= 0) close(answer), answer = -1, number = fault_errno;
    }
    pthread_mutex_unlock(&lock);
    errno = number;
    return answer;
}

#define MODE                        \
    mode_t mode = 0;                \
    va_list rest;                   \
    va_start(rest, flags);          \
    if (flags & O_CREAT) mode = va_arg(rest, mode_t); \
    va_end(rest)

int open(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE; return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE; return opened(folder, path, flags | O_LARGEFILE, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* offset -1: at the descriptor's own. */
static ssize_t written(int descriptor, const void *data, size_t size, off64_t offset) {
    ssize_t (*put)(int, const void *, size_t) = REAL(write);
    ssize_t (*put_at)(int, const void *, size_t, off64_t) = REAL(pwrite64);
    char room[PATH_MAX];
    if (!root_size || descriptor == log_descriptor || !below(of(descriptor, room)))
        return offset < 0 ? put(descriptor, data, size) : put_at(descriptor, data, size, offset);
    pthread_mutex_lock(&lock);
    int now = step();
    ssize_t answer = -1;
    int number = fault_errno;
    if (now != FAIL) {
        size_t part = now == NOTHING || now == LOST ? size : (size + 1) / 2;
        off64_t place = offset < 0 ? lseek64(descriptor, 0, SEEK_CUR) : offset;
        answer = offset < 0 ? put(descriptor, data, part) : put_at(descriptor, data, part, offset);
        number = errno;
        if (answer < 0) refused();
        else record("write", inode_of(descriptor), place, data, answer, room, "");
        if (now == TORN) _exit(70);
        if (now == LOST || now == FULL) answer = -1, number = fault_errno;
    }
    pthread_mutex_unlock(&lock);
    errno = number;
    return answer;
}

ssize_t write(int descriptor, const void *data, size_t size) { return written(descriptor, data, size, -1); }
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) { return written(descriptor, data, size, at); }
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) { return written(descriptor, data, size, at); }

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    char room[PATH_MAX];
    if (!root_size || !below(of(descriptor, room))) return REAL(writev)(descriptor, parts, count);
    ssize_t sum = 0;
    for (int i = 0; i < count; i++) {
        ssize_t size = written(descriptor, parts[i].iov_base, parts[i].iov_len, -1);
        if (size < 0) return sum ? sum : -1;
        sum += size;
        if ((size_t)size < parts[i].iov_len) break;
    }
    return sum;
}

/* Syncing is recorded and may fail, and is not passed on: what it does to the disk is not seen by these tests. */
static int synced(int descriptor) {
    char room[PATH_MAX];
    CALL(root_size && below(of(descriptor, room)), 0, 1, "sync", inode_of(descriptor), 0, NULL, 0, room, "");
}

int fsync(int descriptor) {
    char room[PATH_MAX];
    return root_size && below(of(descriptor, room)) ? synced(descriptor) : REAL(fsync)(descriptor);
}
int fdatasync(int descriptor) { return fsync(descriptor); }

static int truncated(int descriptor, off64_t size) {
    int (*call)(int, off64_t) = REAL(ftruncate64);
    char room[PATH_MAX];
    CALL(root_size && below(of(descriptor, room)), call(descriptor, size), answer == 0, "truncate", inode_of(descriptor),
         (long)size, NULL, 0, room, "");
}
int ftruncate(int descriptor, off_t size) { return truncated(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) { return truncated(descriptor, size); }

int renameat2(int from, const char *old, int to, const char *new, unsigned int flags) {
    char a[PATH_MAX], b[PATH_MAX];
    const char *x = full(from, old, a), *y = full(to, new, b);
    CALL(below(x) || below(y), REAL(renameat2)(from, old, to, new, flags), answer == 0, "rename", 0, 0, NULL, 0, x, y);
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    char a[PATH_MAX], b[PATH_MAX];
    const char *x = full(from, old, a), *y = full(to, new, b);
    CALL(below(y), REAL(linkat)(from, old, to, new, flags), answer == 0, "link", 0, 0, NULL, 0, x, y);
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char room[PATH_MAX];
    const char *place = full(folder, path, room);
    CALL(below(place), REAL(mkdirat)(folder, path, mode), answer == 0, "mkdir", 0, 0, NULL, 0, place, "");
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int folder, const char *path, int flags) {
    char room[PATH_MAX];
    const char *place = full(folder, path, room);
    CALL(below(place), REAL(unlinkat)(folder, path, flags), answer == 0, flags & AT_REMOVEDIR ? "rmdir" : "unlink", 0, 0,
         NULL, 0, place, "");
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
