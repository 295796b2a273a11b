/* What a writer asks of the file system, seen between it and the C library: counted, written down, refused, or cut short
   by the death of the process. Loaded into a process with LD_PRELOAD; asleep until shim_arm is called.

   Only calls under one folder count (its siblings too, where drafts are made). Each has a number from 1. Before call
   "at" takes effect the process dies, or the call and those after it fail with "error". Every call is written to a log
   with all its data, so that a power cut can be played from it. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WATCH, KILL, HALF, FAIL, FAIL_ONCE };

static struct {
    int armed, mode, error, logged;
    long at, count;
    char folder[PATH_MAX];
} state = {.logged = -1};
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

int shim_arm(const char *folder, int mode, long at, int error, int log) {
    strncpy(state.folder, folder, PATH_MAX - 1);
    state.mode = mode; state.at = at; state.error = error; state.logged = log; state.count = 0; state.armed = 1;
    return 1;
}

long shim_disarm(void) { state.armed = 0; return state.count; }

static void put(const void *data, size_t size) {
    while (size > 0) {
        ssize_t done = syscall(SYS_write, state.logged, data, size);
        if (done <= 0) return;
        data = (const char *)data + done; size -= done;
    }
}

/* A record: kind, three numbers, the lengths of two texts and of the data, then these. */
static void record(char kind, int64_t a, int64_t b, int64_t c, const char *one, const char *two,
                   const void *data, int64_t size) {
    if (state.logged < 0) return;
    int64_t head[7] = {kind, a, b, c, one ? (int64_t)strlen(one) : 0, two ? (int64_t)strlen(two) : 0, size};
    put(head, sizeof head);
    if (one) put(one, head[4]);
    if (two) put(two, head[5]);
    if (size) put(data, size);
}

static int inside(const char *path) {
    size_t size = strlen(state.folder);
    return strncmp(path, state.folder, size) == 0 && (path[size] == '/' || path[size] == 0);
}

/* The absolute path of a name below a folder that is open, without following its last link. */
static int named(int folder, const char *path, char *out) {
    if (!path) return 0;
    if (path[0] == '/') { snprintf(out, PATH_MAX, "%s", path); return inside(out); }
    char from[64], base[PATH_MAX];
    if (folder == AT_FDCWD) snprintf(from, sizeof from, "/proc/self/cwd");
    else snprintf(from, sizeof from, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(from, base, sizeof base - 1);
    if (size < 0) return 0;
    base[size] = 0;
    if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    return inside(out);
}

static int of_handle(int handle, char *out) {
    char from[64];
    snprintf(from, sizeof from, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(from, out, PATH_MAX - 1);
    if (size < 0) return 0;
    out[size] = 0;
    return inside(out);
}

static int64_t inode_of(int handle) { struct stat s; return fstat(handle, &s) ? -1 : (int64_t)s.st_ino; }
static int64_t inode_at(const char *path) { struct stat s; return lstat(path, &s) ? -1 : (int64_t)s.st_ino; }

/* Counts a call that is about to happen; 1 where it must fail. "grows" is 1 for calls that take space, and -1 for those
   that give some back, which no full or failing disk of ours refuses. */
static int before(int grows) {
    long number = ++state.count;
    if (state.mode == KILL && number == state.at) syscall(SYS_kill, getpid(), SIGKILL);
    if (state.mode == FAIL_ONCE && number == state.at && grows >= 0) { errno = state.error; return 1; }
    if (state.mode == FAIL && number >= state.at && grows > 0) { errno = state.error; return 1; }
    return 0;
}

static int half_now(void) { return state.mode == HALF && state.count == state.at; }

#define ENTER(watched) int on = state.armed && (watched); int saved = errno; \
    if (on) { pthread_mutex_lock(&door); errno = saved; }
#define LEAVE do { int kept = errno; if (on) pthread_mutex_unlock(&door); errno = kept; } while (0)

static int opened(int result, int flags, const char *path, int was_there) {
    int kept = errno;
    if (result >= 0 && (flags & (O_CREAT | O_TRUNC)))
        record('o', inode_of(result), !was_there, !!(flags & O_TRUNC), path, NULL, NULL, 0);
    errno = kept;
    return result;
}

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    int makes = flags & (O_CREAT | O_TRUNC);
    ENTER(makes && named(folder, path, whole));
    int result = -1, there = on && access(whole, F_OK) == 0;
    errno = saved;
    if (!on || !before(!there)) result = syscall(SYS_openat, folder, path, flags, mode);
    if (on) opened(result, flags, whole, there);
    LEAVE;
    return result;
}

#define MODE(last) mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list rest; va_start(rest, last); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE(flags) return open_any(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_any(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return open_any(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return open_any(at, path, flags | O_LARGEFILE, mode); }
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* "offset" is -1 for a write where the handle stands. */
static ssize_t write_any(int handle, const void *data, size_t size, off_t offset) {
    char path[PATH_MAX];
    ENTER(handle > 2 && handle != state.logged && of_handle(handle, path));
    ssize_t done = -1;
    if (!on || !before(1)) {
        size_t some = on && half_now() ? size / 2 : size;
        done = offset < 0 ? syscall(SYS_write, handle, data, some) : syscall(SYS_pwrite64, handle, data, some, offset);
        if (on && done > 0) {
            off_t start = offset < 0 ? lseek(handle, 0, SEEK_CUR) - done : offset;
            record('w', inode_of(handle), start, 0, path, NULL, data, done);
        }
        if (on && half_now()) syscall(SYS_kill, getpid(), SIGKILL);
    }
    LEAVE;
    return done;
}

ssize_t write(int handle, const void *data, size_t size) { return write_any(handle, data, size, -1); }
ssize_t pwrite(int handle, const void *data, size_t size, off_t at) { return write_any(handle, data, size, at); }
ssize_t pwrite64(int handle, const void *data, size_t size, off_t at) { return write_any(handle, data, size, at); }

ssize_t writev(int handle, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!(state.armed && handle > 2 && handle != state.logged && of_handle(handle, path)))
        return syscall(SYS_writev, handle, parts, count);
    size_t size = 0, at = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    char *all = malloc(size ? size : 1);
    for (int i = 0; i < count; i++) { memcpy(all + at, parts[i].iov_base, parts[i].iov_len); at += parts[i].iov_len; }
    ssize_t done = write_any(handle, all, size, -1);
    int kept = errno;
    free(all);
    errno = kept;
    return done;
}

static int truncate_any(int handle, off_t size) {
    char path[PATH_MAX];
    ENTER(of_handle(handle, path));
    int result = -1;
    if (!on || !before(1)) result = syscall(SYS_ftruncate, handle, size);
    if (on && !result) record('t', inode_of(handle), size, 0, path, NULL, NULL, 0);
    LEAVE;
    return result;
}
int ftruncate(int handle, off_t size) { return truncate_any(handle, size); }
int ftruncate64(int handle, off_t size) { return truncate_any(handle, size); }

static int sync_any(int handle, int data_only) {
    char path[PATH_MAX];
    struct stat s;
    ENTER(of_handle(handle, path));
    int result = -1;
    if (!on || !before(1)) result = on ? 0 : syscall(data_only ? SYS_fdatasync : SYS_fsync, handle);
    if (on && !result && !fstat(handle, &s)) record('s', s.st_ino, S_ISDIR(s.st_mode), 0, path, NULL, NULL, 0);
    LEAVE;
    return result;
}
int fsync(int handle) { return sync_any(handle, 0); }
int fdatasync(int handle) { return sync_any(handle, 1); }

static int rename_any(int from, const char *old, int to, const char *new, unsigned flags) {
    char first[PATH_MAX], second[PATH_MAX];
    ENTER(named(from, old, first) | named(to, new, second));
    int result = -1;
    if (!on || !before(0)) result = syscall(SYS_renameat2, from, old, to, new, flags);
    if (on && !result) record('r', flags, 0, 0, first, second, NULL, 0);
    LEAVE;
    return result;
}
int rename(const char *old, const char *new) { return rename_any(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return rename_any(from, old, to, new, 0); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return rename_any(from, old, to, new, flags);
}

static int unlink_any(int folder, const char *path, int flags) {
    char whole[PATH_MAX];
    ENTER(named(folder, path, whole));
    int result = -1;
    if (!on || !before(-1)) result = syscall(SYS_unlinkat, folder, path, flags);
    if (on && !result) record('u', 0, 0, 0, whole, NULL, NULL, 0);
    LEAVE;
    return result;
}
int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlink_any(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int folder, const char *path, int flags) { return unlink_any(folder, path, flags); }

static int make_any(int folder, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    ENTER(named(folder, path, whole));
    int result = -1;
    if (!on || !before(1)) result = syscall(SYS_mkdirat, folder, path, mode);
    if (on && !result) record('d', inode_at(whole), 0, 0, whole, NULL, NULL, 0);
    LEAVE;
    return result;
}
int mkdir(const char *path, mode_t mode) { return make_any(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return make_any(folder, path, mode); }

static int link_any(int from, const char *old, int to, const char *new, int flags) {
    char first[PATH_MAX], second[PATH_MAX];
    ENTER(named(from, old, first) | named(to, new, second));
    int result = -1;
    if (!on || !before(1)) result = syscall(SYS_linkat, from, old, to, new, flags);
    if (on && !result) record('l', 0, 0, 0, first, second, NULL, 0);
    LEAVE;
    return result;
}
int link(const char *old, const char *new) { return link_any(AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) { return link_any(from, old, to, new, flags); }

/* Shared maps that are written to: what is in them is taken down as one write when they are synced or given back. */
enum { MAPS = 64 };
static struct { char *start; size_t size; off_t offset; int64_t inode; char path[PATH_MAX]; } maps[MAPS];

static void *map_any(void *hint, size_t size, int allowed, int flags, int handle, off_t offset) {
    void *start = (void *)syscall(SYS_mmap, hint, size, allowed, flags, handle, offset);
    char path[PATH_MAX];
    if (state.armed && start != MAP_FAILED && handle >= 0 && (flags & MAP_SHARED) && (allowed & PROT_WRITE)
        && of_handle(handle, path))
        for (int i = 0; i < MAPS; i++)
            if (!maps[i].start) {
                maps[i].start = start; maps[i].size = size; maps[i].offset = offset;
                maps[i].inode = inode_of(handle); strcpy(maps[i].path, path);
                break;
            }
    return start;
}
void *mmap(void *hint, size_t size, int allowed, int flags, int handle, off_t offset) {
    return map_any(hint, size, allowed, flags, handle, offset);
}
void *mmap64(void *hint, size_t size, int allowed, int flags, int handle, off_t offset) {
    return map_any(hint, size, allowed, flags, handle, offset);
}

static void taken_down(void *start, int synced, int gone) {
    for (int i = 0; i < MAPS; i++)
        if (maps[i].start == start && state.armed) {
            pthread_mutex_lock(&door);
            before(0);
            record('w', maps[i].inode, maps[i].offset, 0, maps[i].path, NULL, maps[i].start, maps[i].size);
            if (synced) record('s', maps[i].inode, 0, 0, maps[i].path, NULL, NULL, 0);
            if (gone) maps[i].start = NULL;
            pthread_mutex_unlock(&door);
        }
}
int msync(void *start, size_t size, int flags) {
    taken_down(start, 1, 0);
    return syscall(SYS_msync, start, size, flags);
}
int munmap(void *start, size_t size) {
    taken_down(start, 0, 1);
    return syscall(SYS_munmap, start, size);
}
