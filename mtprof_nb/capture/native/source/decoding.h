// Turns the bytes of `inputs.h` into Python objects: tuples of shapes, and JSON texts of values.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <stdexcept>
#include <string>

#include "codes.h"
#include "inputs.h"

namespace mtprof {

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool is_done() const {
    return at_ == end_;
  }

  char tag() {
    return *at_++;
  }

  template <typename Number>
  Number number() {
    Number found;
    std::memcpy(&found, at_, sizeof(found));
    at_ += sizeof(found);
    return found;
  }

  std::string text(size_t size) {
    std::string found(at_, size);
    at_ += size;
    return found;
  }

 private:
  const char* at_;
  const char* end_;
};

// A reference that is released unless it is taken.
class Owned {
 public:
  explicit Owned(PyObject* object) : object_(object) {
    if (object == nullptr) {
      throw std::bad_alloc();
    }
  }
  Owned(Owned&& other) noexcept : object_(other.take()) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    Py_XDECREF(object_);
  }
  PyObject* get() const {
    return object_;
  }
  PyObject* take() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_;
};

// Call `function`, which needs no Python, without the GIL. Its failure is thrown when the GIL is held again.
template <typename Function>
void without_gil(Function&& function) {
  bool has_failed = false;
  Py_BEGIN_ALLOW_THREADS;
  try {
    function();
  } catch (const std::exception&) {
    has_failed = true;
  }
  Py_END_ALLOW_THREADS;
  if (has_failed) {
    throw std::bad_alloc();
  }
}

// Python's MemoryError with a remedy, in the place of one that says less; other errors stay. Returns nullptr.
inline PyObject* out_of_memory(const char* problem) {
  if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_MemoryError)) {
    PyErr_SetString(PyExc_MemoryError, problem);
  }
  return nullptr;
}

inline void append_to(const Owned& list, Owned item) {
  if (PyList_Append(list.get(), item.get()) < 0) {
    throw std::bad_alloc();
  }
}

inline Owned text_object(const std::string& text) {
  return Owned(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

inline Owned python_text(const PythonText& text) {
  const auto length = static_cast<Py_ssize_t>(text.bytes.size() / text.width);
  return Owned(PyUnicode_FromKindAndData(static_cast<int>(text.width), text.bytes.data(), length));
}

inline Owned numbers_object(Reader& reader, size_t count) {
  Owned found(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t index = 0; index < count; ++index) {
    PyTuple_SET_ITEM(found.get(), static_cast<Py_ssize_t>(index), Owned(PyLong_FromLongLong(reader.number<int64_t>())).take());
  }
  return found;
}

// Reads one tensor; returns its type's name, "" where it is undefined.
inline std::string read_tensor(Reader& reader, char tag, const Owned& shapes, const Owned& strides) {
  if (tag == kUndefined) {
    append_to(shapes, Owned(PyTuple_New(0)));
    append_to(strides, Owned(PyTuple_New(0)));
    return "";
  }
  const auto type = static_cast<c10::ScalarType>(reader.tag());
  const size_t count = reader.number<uint16_t>();
  append_to(shapes, numbers_object(reader, count));
  append_to(strides, tag == kStrided ? numbers_object(reader, count) : Owned(PyTuple_New(0)));
  return std::string(c10::scalarTypeToTypeMeta(type).name());
}

inline Owned as_tuple(const Owned& list) {
  return Owned(PyList_AsTuple(list.get()));
}

// (shapes, types, strides) of an op's inputs, each a tuple with an entry an input.
inline Owned forms_object(const std::string& text) {
  Reader reader(text);
  Owned shapes(PyList_New(0)), types(PyList_New(0)), strides(PyList_New(0));
  while (!reader.is_done()) {
    const char tag = reader.tag();
    std::string type;
    if (tag == kTensorList) {
      Owned inner_shapes(PyList_New(0)), inner_strides(PyList_New(0));
      for (uint32_t left = reader.number<uint32_t>(); left > 0; --left) {
        const char inner = reader.tag();
        read_tensor(reader, inner, inner_shapes, inner_strides);
      }
      append_to(shapes, as_tuple(inner_shapes));
      append_to(strides, as_tuple(inner_strides));
      type = "TensorList";
    } else if (tag == kTensor || tag == kStrided || tag == kUndefined) {
      type = read_tensor(reader, tag, shapes, strides);
    } else {
      append_to(shapes, Owned(PyTuple_New(0)));
      append_to(strides, Owned(PyTuple_New(0)));
      type = tag == kScalar ? "Scalar" : tag == kScalarList ? "ScalarList" : "";
    }
    append_to(types, text_object(type));
  }
  Owned found(PyTuple_New(3));
  PyTuple_SET_ITEM(found.get(), 0, as_tuple(shapes).take());
  PyTuple_SET_ITEM(found.get(), 1, as_tuple(types).take());
  PyTuple_SET_ITEM(found.get(), 2, as_tuple(strides).take());
  return found;
}

// A number as Python's `json` writes it.
inline std::string json_number(double number) {
  if (std::isnan(number)) {
    return "NaN";
  }
  if (std::isinf(number)) {
    return number > 0 ? "Infinity" : "-Infinity";
  }
  char* text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
  if (text == nullptr) {
    throw std::bad_alloc();
  }
  std::string found(text);
  PyMem_Free(text);
  return found;
}

inline void add_json_text(std::string_view text, std::string& found) {
  static const char* const kDigits = "0123456789abcdef";
  found += '"';
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      found += '\\';
      found += letter;
    } else if (code < 0x20) {
      found += "\\u00";
      found += kDigits[code >> 4];
      found += kDigits[code & 15];
    } else {
      found += letter;
    }
  }
  found += '"';
}

inline std::string json_text(std::string_view text) {
  std::string found;
  add_json_text(text, found);
  return found;
}

inline std::string json_value(Reader& reader) {
  switch (reader.tag()) {
    case 'i':
      return std::to_string(reader.number<int64_t>());
    case 'j':
      return std::to_string(reader.number<int32_t>());
    case 'd':
      return json_number(reader.number<double>());
    case 't':
      return "true";
    case 'f':
      return "false";
    case 'c': {
      const double real = reader.number<double>();
      return "{\"real\":" + json_number(real) + ",\"imag\":" + json_number(reader.number<double>()) + "}";
    }
    case 'q':
      return json_text(reader.text(reader.number<uint32_t>()));
    case '(': {
      std::string found = "[";
      for (uint32_t left = reader.number<uint32_t>(); left > 0; --left) {
        found += json_value(reader);
        found += left > 1 ? "," : "";
      }
      return found + "]";
    }
    default:
      return "null";
  }
}

// The JSON text of values: [one for each positional input, [[key, value] for each keyword]].
inline std::string values_text(const std::string& text) {
  Reader reader(text);
  std::string positional, keywords;
  while (!reader.is_done()) {
    Reader ahead = reader;
    if (ahead.tag() != 'k') {
      positional += (positional.empty() ? "" : ",") + json_value(reader);
      continue;
    }
    reader.tag();
    const std::string key = json_text(reader.text(reader.number<uint32_t>()));
    keywords += (keywords.empty() ? "[" : ",[") + key + "," + json_value(reader) + "]";
  }
  return "[[" + positional + "],[" + keywords + "]]";
}

}  // namespace mtprof
