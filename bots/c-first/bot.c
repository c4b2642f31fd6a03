/* Plays the first legal action of every ask, as fast as it can: a whole bot without any library.
 *
 * A frame is a length (u32, big-endian) and one msgpack map. Of a map only the values of `type`, `id` and `legal` are
 * looked at; everything else is stepped over. The answer repeats the bytes of the id and of the action as they came.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 1 << 20, ANSWER_MAX = 512 };

static uint8_t input[4 + BODY_MAX];
static size_t input_size;

/* What is left to read of a body; every step checks that it does not leave it. */
struct reader {
    const uint8_t *at, *end;
};

struct slice {
    const uint8_t *start;
    size_t size;
};

static void fail(const char *why) {
    (void)!write(2, why, strlen(why));
    exit(1);
}

static void write_all(const uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(1, data, size);
        if (written <= 0) {
            exit(1);
        }
        data += written;
        size -= (size_t)written;
    }
}

static const uint8_t *take(struct reader *r, uint64_t size) {
    if (size > (uint64_t)(r->end - r->at)) {
        fail("a message is cut off\n");
    }
    const uint8_t *start = r->at;
    r->at += size;
    return start;
}

static uint64_t number(struct reader *r, int bytes) {
    const uint8_t *p = take(r, (uint64_t)bytes);
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value = value << 8 | p[i];
    }
    return value;
}

/* Step over the head of a value and what it holds directly; return how many values follow inside it. */
static uint64_t enter(struct reader *r) {
    uint8_t head = *take(r, 1);
    if (head < 0x80 || head >= 0xe0 || head == 0xc0 || head == 0xc2 || head == 0xc3) {
        return 0; /* small integers, nil, false, true */
    }
    if (head < 0x90) {
        return 2 * (uint64_t)(head & 0x0f); /* fixmap */
    }
    if (head < 0xa0) {
        return head & 0x0f; /* fixarray */
    }
    if (head < 0xc0) {
        take(r, head & 0x1f); /* fixstr */
        return 0;
    }
    switch (head) {
    case 0xcc: case 0xd0: take(r, 1); return 0; /* integers and floats */
    case 0xcd: case 0xd1: take(r, 2); return 0;
    case 0xce: case 0xd2: case 0xca: take(r, 4); return 0;
    case 0xcf: case 0xd3: case 0xcb: take(r, 8); return 0;
    case 0xd9: case 0xc4: take(r, number(r, 1)); return 0; /* strings and binaries */
    case 0xda: case 0xc5: take(r, number(r, 2)); return 0;
    case 0xdb: case 0xc6: take(r, number(r, 4)); return 0;
    case 0xdc: return number(r, 2); /* arrays */
    case 0xdd: return number(r, 4);
    case 0xde: return 2 * number(r, 2); /* maps */
    case 0xdf: return 2 * number(r, 4);
    default: fail("a message holds an unknown type\n"); return 0;
    }
}

/* Step over a whole value, however deep, and return its bytes. */
static struct slice skip(struct reader *r) {
    const uint8_t *start = r->at;
    for (uint64_t left = 1; left > 0; left--) {
        left += enter(r);
    }
    return (struct slice){start, (size_t)(r->at - start)};
}

/* All strings compared are shorter than 32 bytes, so their head is one byte. */
static int is_string(struct slice s, const char *text) {
    size_t size = strlen(text);
    return s.size == size + 1 && s.start[0] == (0xa0 | size) && memcmp(s.start + 1, text, size) == 0;
}

/* Return the body of the next frame, or an empty slice at the end of stdin. `used` is the size of the last frame. */
static struct slice next_body(size_t used) {
    memmove(input, input + used, input_size - used);
    input_size -= used;
    for (;;) {
        if (input_size >= 4) {
            size_t size = (size_t)input[0] << 24 | (size_t)input[1] << 16 | (size_t)input[2] << 8 | input[3];
            if (size > BODY_MAX) {
                fail("a frame is too long\n");
            }
            if (input_size >= 4 + size) {
                return (struct slice){input + 4, size};
            }
        }
        ssize_t got = read(0, input + input_size, sizeof input - input_size);
        if (got <= 0) {
            return (struct slice){NULL, 0};
        }
        input_size += (size_t)got;
    }
}

static void say_hello(void) {
    static const uint8_t hello[] = "\0\0\0\x23\x83\xa4type\xa5hello\xa8protocol\1\xa4name\xa7"
                                   "c-first";
    write_all(hello, sizeof hello - 1);
}

static void answer(struct slice id, struct slice legal) {
    if (id.start == NULL || legal.start == NULL) {
        fail("an ask has no id or no legal actions\n");
    }
    struct reader r = {legal.start, legal.start + legal.size};
    if (enter(&r) == 0) {
        fail("an ask has no legal action\n");
    }
    struct slice action = skip(&r);
    uint8_t out[ANSWER_MAX] = "\0\0\0\0\x83\xa4type\xa3"
                              "act\xa2id";
    size_t size = 4 + 1 + 5 + 4 + 3;
    if (id.size + action.size + size + 7 > sizeof out) {
        fail("an action is too long\n");
    }
    memcpy(out + size, id.start, id.size);
    size += id.size;
    memcpy(out + size, "\xa6" "action", 7);
    size += 7;
    memcpy(out + size, action.start, action.size);
    size += action.size;
    out[2] = (uint8_t)((size - 4) >> 8);
    out[3] = (uint8_t)(size - 4);
    write_all(out, size);
}

int main(void) {
    size_t used = 0;
    for (;;) {
        struct slice body = next_body(used);
        if (body.start == NULL) {
            return 0;
        }
        used = 4 + body.size;
        struct reader r = {body.start, body.start + body.size};
        struct slice type = {NULL, 0}, id = {NULL, 0}, legal = {NULL, 0};
        for (uint64_t left = enter(&r); left > 0; left -= 2) {
            struct slice key = skip(&r), value = skip(&r);
            if (is_string(key, "type")) {
                type = value;
            } else if (is_string(key, "id")) {
                id = value;
            } else if (is_string(key, "legal")) {
                legal = value;
            }
        }
        if (is_string(type, "ask")) {
            answer(id, legal);
        } else if (is_string(type, "hello")) {
            say_hello();
        } else if (is_string(type, "bye")) {
            return 0;
        }
    }
}
