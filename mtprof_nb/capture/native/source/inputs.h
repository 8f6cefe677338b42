// Inputs of an op as bytes: their shapes, element types and strides in one text, their values in another.
//
// The forms are those that torch's own profiler records, so that both can be compared.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

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

inline void append(std::string& text, const void* data, size_t size) {
  text.append(static_cast<const char*>(data), size);
}

template <typename Number>
void append_number(std::string& text, Number number) {
  append(text, &number, sizeof(number));
}

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
inline void append_tensor(std::string& text, const at::Tensor& tensor, InputDevice& device) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (!tensor.defined() || tensor.is_nested() || impl->has_symbolic_sizes_strides()) {
    text.push_back(kUndefined);
    return;
  }
  const bool is_python = impl->is_python_dispatch();
  if (!is_python && !tensor.is_cpu() && device.type == 0) {
    const c10::Device own = tensor.device();
    device = {static_cast<int8_t>(own.type()), static_cast<int8_t>(own.has_index() ? own.index() : 0)};
  }
  const bool is_strided = has_strides(*impl, is_python);
  const auto sizes = is_python ? impl->sizes_default() : tensor.sizes();
  text.push_back(is_strided ? kStrided : kTensor);
  text.push_back(static_cast<char>(tensor.scalar_type()));
  append_number(text, static_cast<uint16_t>(sizes.size()));
  append(text, sizes.data(), sizes.size() * sizeof(int64_t));
  if (is_strided) {
    const auto strides = is_python ? impl->strides_default() : tensor.strides();
    append(text, strides.data(), sizes.size() * sizeof(int64_t));
  }
}

inline bool is_scalar_list(const c10::IValue& value) {
  if (!value.isList()) {
    return false;
  }
  const auto list = value.toListRef();
  return list.empty() || (list[0].isScalar() && list.size() <= kLongestScalarList);
}

inline void append_form(std::string& text, const c10::IValue& value, InputDevice& device) {
  if (value.isTensor()) {
    append_tensor(text, value.toTensor(), device);
  } else if (value.isScalar()) {
    text.push_back(kScalar);
  } else if (value.isTensorList()) {
    const auto list = value.toTensorList();
    text.push_back(kTensorList);
    append_number(text, static_cast<uint32_t>(list.size()));
    for (const at::Tensor& tensor : list) {
      append_tensor(text, tensor, device);
    }
  } else {
    text.push_back(is_scalar_list(value) ? kScalarList : kOther);
  }
}

inline void append_scalar(std::string& text, const c10::IValue& value) {
  if (value.isInt()) {
    text.push_back('i');
    append_number(text, value.toInt());
  } else if (value.isDouble()) {
    text.push_back('d');
    append_number(text, value.toDouble());
  } else if (value.isBool()) {
    text.push_back(value.toBool() ? 't' : 'f');
  } else if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    text.push_back('c');
    append_number(text, number.real());
    append_number(text, number.imag());
  } else {
    text.push_back('n');
  }
}

inline void append_text(std::string& text, const std::string& value) {
  text.push_back('q');
  append_number(text, static_cast<uint32_t>(value.size()));
  text += value;
}

// Append the value of an input: a scalar, or a short list of them; nothing of a tensor.
inline void append_value(std::string& text, const c10::IValue& value) {
  if (value.isScalar()) {
    append_scalar(text, value);
  } else if (is_scalar_list(value)) {
    const auto list = value.toListRef();
    text.push_back('(');
    append_number(text, static_cast<uint32_t>(list.size()));
    for (const c10::IValue& item : list) {
      append_scalar(text, item);
    }
  } else {
    text.push_back('n');
  }
}

// Append a keyword of a scope: torch keeps texts as well there.
inline void append_keyword(std::string& text, const c10::IValue& value) {
  if (value.isString()) {
    append_text(text, value.toStringRef());
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
inline void append_addresses(std::string& text, const c10::IValue& value) {
  if (value.isTensor()) {
    append_number(text, uint32_t{1});
    append_number(text, address_of(value.toTensor()));
  } else if (value.isTensorList()) {
    const auto list = value.toTensorList();
    append_number(text, static_cast<uint32_t>(list.size()));
    for (const at::Tensor& tensor : list) {
      append_number(text, address_of(tensor));
    }
  }
}

}  // namespace mtprof
