// Numbers of 16 bits, which are only read: they are computed as float32.
#pragma once
#include <stdint.h>
#include <string.h>

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

struct Half {
    uint16_t bits;
    explicit operator float() const {
        const uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7FFF;
        constexpr uint32_t MORE = uint32_t(127 - 15) << 23;  // the exponents' zeros differ
        const float tiny = float(rest) * 0x1p-24f;           // without an exponent
        uint32_t tiny_bits;
        memcpy(&tiny_bits, &tiny, 4);
        uint32_t found = (rest << 13) + (rest >= 0x7C00 ? 2 * MORE : MORE);
        found = sign | (rest < 0x400 ? tiny_bits : found);
        float number;
        memcpy(&number, &found, 4);
        return number;
    }
};

struct BFloat {
    uint16_t bits;
    explicit operator float() const {
        const uint32_t found = uint32_t(bits) << 16;
        float number;
        memcpy(&number, &found, 4);
        return number;
    }
};

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
