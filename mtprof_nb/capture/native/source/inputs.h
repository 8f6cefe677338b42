// Inputs of an op as bytes: their shapes, element types and strides in one text, their values in another.
//
// The forms are those that torch's own profiler records, so that both can be compared.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "interner.h"

namespace mtprof {

enum Tag : char {
  kTensor = 'T',
  kStrided = 'D',
  kTensorList = 'L',
  kScalar = 'S',
  kScalarList = 's',
  kOther = 'O',
  kUndefined = 'U',
};

// Lists of scalars that are longer have no values, as in torch.
constexpr size_t kLongestScalarList = 30;

// A device other than the CPU on which an op has a tensor; type 0 is the CPU.
struct InputDevice {
  int8_t type = 0;
  int8_t index = 0;
};

// Whether a tensor has strides. Its own word is not asked for where Python may answer.
inline bool has_strides(const c10::TensorImpl& impl, bool is_python) {
  if (is_python) {
    return !(impl.is_sparse() || impl.is_sparse_compressed() || impl.is_mkldnn());
  }
  return impl.layout() == at::kStrided;
}

// A subclass in Python may run code of the user's to tell its sizes: those are taken that it was made with.
inline void append_tensor(Bytes& text, const at::Tensor& tensor, InputDevice& device) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (!tensor.defined() || tensor.is_nested() || impl->has_symbolic_sizes_strides()) {
    text.reserve(1);
    text.put(kUndefined);
    return;
  }
  const bool is_python = impl->is_python_dispatch();
  if (!is_python && !tensor.is_cpu() && device.type == 0) {
    const c10::Device own = tensor.device();
    device = {static_cast<int8_t>(own.type()), static_cast<int8_t>(own.has_index() ? own.index() : 0)};
  }
  const bool is_strided = has_strides(*impl, is_python);
  const auto sizes = is_python ? impl->sizes_default() : tensor.sizes();
  text.reserve(4 + 2 * sizes.size() * sizeof(int64_t));
  text.put(is_strided ? kStrided : kTensor);
  text.put(static_cast<char>(tensor.scalar_type()));
  text.put_number(static_cast<uint16_t>(sizes.size()));
  text.put(sizes.data(), sizes.size() * sizeof(int64_t));
  if (is_strided) {
    const auto strides = is_python ? impl->strides_default() : tensor.strides();
    text.put(strides.data(), sizes.size() * sizeof(int64_t));
  }
}

inline bool is_scalar_list(const c10::IValue& value) {
  if (!value.isList()) {
    return false;
  }
  const auto list = value.toListRef();
  return list.empty() || (list[0].isScalar() && list.size() <= kLongestScalarList);
}

inline void append_form(Bytes& text, const c10::IValue& value, InputDevice& device) {
  if (value.isTensor()) {
    append_tensor(text, value.toTensor(), device);
  } else if (value.isScalar()) {
    text.reserve(1);
    text.put(kScalar);
  } else if (value.isTensorList()) {
    const auto list = value.toTensorList();
    text.reserve(5);
    text.put(kTensorList);
    text.put_number(static_cast<uint32_t>(list.size()));
    for (const at::Tensor& tensor : list) {
      append_tensor(text, tensor, device);
    }
  } else {
    text.reserve(1);
    text.put(is_scalar_list(value) ? kScalarList : kOther);
  }
}

inline void append_scalar(Bytes& text, const c10::IValue& value) {
  text.reserve(1 + 2 * sizeof(double));
  if (value.isInt()) {
    const int64_t number = value.toInt();
    const auto half = static_cast<int32_t>(number);
    if (half == number) {  // nearly all, and many values are kept
      text.put('j');
      text.put_number(half);
    } else {
      text.put('i');
      text.put_number(number);
    }
  } else if (value.isDouble()) {
    text.put('d');
    text.put_number(value.toDouble());
  } else if (value.isBool()) {
    text.put(value.toBool() ? 't' : 'f');
  } else if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    text.put('c');
    text.put_number(number.real());
    text.put_number(number.imag());
  } else {
    text.put('n');
  }
}

inline void append_text(Bytes& text, const std::string& value) {
  text.reserve(5 + value.size());
  text.put('q');
  text.put_number(static_cast<uint32_t>(value.size()));
  text.put(value.data(), value.size());
}

// Append the value of an input: a scalar, or a short list of them; nothing of a tensor.
inline void append_value(Bytes& text, const c10::IValue& value) {
  if (value.isScalar()) {
    append_scalar(text, value);
  } else if (is_scalar_list(value)) {
    const auto list = value.toListRef();
    text.reserve(5);
    text.put('(');
    text.put_number(static_cast<uint32_t>(list.size()));
    for (const c10::IValue& item : list) {
      append_scalar(text, item);
    }
  } else {
    text.reserve(1);
    text.put('n');
  }
}

inline bool is_text_list(const c10::IValue& value) {
  const auto is_text = [](const c10::IValue& item) { return item.isString(); };
  return value.isList() && !value.toListRef().empty() &&
         std::all_of(value.toListRef().begin(), value.toListRef().end(), is_text);
}

// Append a keyword of a scope: torch keeps texts as well there, and lists of them.
inline void append_keyword(Bytes& text, const c10::IValue& value) {
  if (value.isString()) {
    append_text(text, value.toStringRef());
  } else if (is_text_list(value)) {
    text.reserve(5);
    text.put('(');
    text.put_number(static_cast<uint32_t>(value.toListRef().size()));
    for (const c10::IValue& item : value.toListRef()) {
      append_text(text, item.toStringRef());
    }
  } else {
    append_value(text, value);
  }
}

// The start of the memory of a tensor, 0 where it has none.
inline uint64_t address_of(const at::Tensor& tensor) {
  try {
    return tensor.defined() && tensor.has_storage() ? reinterpret_cast<uint64_t>(tensor.storage().data()) : 0;
  } catch (...) {  // a tensor without memory of its own
    return 0;
  }
}

// Append the addresses of an input's tensors, after their number.
inline void append_addresses(Bytes& text, const c10::IValue& value) {
  if (value.isTensor()) {
    text.reserve(12);
    text.put_number(uint32_t{1});
    text.put_number(address_of(value.toTensor()));
  } else if (value.isTensorList()) {
    const auto list = value.toTensorList();
    text.reserve(4 + 8 * list.size());
    text.put_number(static_cast<uint32_t>(list.size()));
    for (const at::Tensor& tensor : list) {
      text.put_number(address_of(tensor));
    }
  }
}

}  // namespace mtprof
