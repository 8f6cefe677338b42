// The objects of given classes that Python's garbage collector knows. No object is touched: only its type is read.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <unordered_map>
#include <vector>

#include "decoding.h"

namespace mtprof {

class LivingObjects {
 public:
  explicit LivingObjects(std::vector<PyTypeObject*> bases) : bases_(std::move(bases)), found_(bases_.size()) {}

  void visit(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    const size_t slot = (reinterpret_cast<uintptr_t>(type) >> 4) % kSlots;
    if (last_[slot].type != type) {
      last_[slot] = {type, home_of(type)};
    }
    if (last_[slot].home != nullptr) {
      Py_INCREF(object);
      last_[slot].home->push_back(Owned(object));
    }
  }

  // A list for each class. Call it once.
  Owned lists() {
    Owned all(PyList_New(0));
    for (std::vector<Owned>& objects : found_) {
      Owned list(PyList_New(static_cast<Py_ssize_t>(objects.size())));
      for (size_t position = 0; position < objects.size(); ++position) {
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(position), objects[position].take());
      }
      append_to(all, std::move(list));
    }
    return all;
  }

 private:
  using Home = std::vector<Owned>*;
  struct Known {
    PyTypeObject* type = nullptr;
    Home home = nullptr;
  };
  static constexpr size_t kSlots = 1021;

  Home home_of(PyTypeObject* type) {
    const auto [found, is_new] = homes_.try_emplace(type, nullptr);
    for (size_t number = 0; is_new && number < bases_.size(); ++number) {
      if (PyType_IsSubtype(type, bases_[number])) {
        found->second = &found_[number];
        break;
      }
    }
    return found->second;
  }

  const std::vector<PyTypeObject*> bases_;
  std::vector<std::vector<Owned>> found_;
  std::unordered_map<PyTypeObject*, Home> homes_;
  std::vector<Known> last_ = std::vector<Known>(kSlots);
};

#if PY_VERSION_HEX >= 0x030C0000

inline void visit_all(LivingObjects& search) {
  struct Visit {
    LivingObjects& search;
    bool has_failed;
  } visit{search, false};
  PyUnstable_GC_VisitObjects(
      [](PyObject* object, void* argument) {
        auto* self = static_cast<Visit*>(argument);
        try {
          self->search.visit(object);
        } catch (const std::exception&) {  // not through the collector
          self->has_failed = true;
        }
        return self->has_failed ? 0 : 1;
      },
      &visit);
  if (visit.has_failed) {
    throw std::bad_alloc();
  }
}

#else

inline void visit_all(LivingObjects& search) {
  Owned collector(PyImport_ImportModule("gc"));
  Owned objects(PyObject_CallMethod(collector.get(), "get_objects", nullptr));
  for (Py_ssize_t position = 0; position < PyList_GET_SIZE(objects.get()); ++position) {
    search.visit(PyList_GET_ITEM(objects.get(), position));
  }
}

#endif

// living(*classes): for each class a list of its living instances.
inline PyObject* living(PyObject*, PyObject* arguments) {
  try {
    std::vector<PyTypeObject*> bases;
    for (Py_ssize_t position = 0; position < PyTuple_GET_SIZE(arguments); ++position) {
      PyObject* base = PyTuple_GET_ITEM(arguments, position);
      if (!PyType_Check(base)) {
        PyErr_SetString(PyExc_TypeError, "living() takes classes");
        return nullptr;
      }
      bases.push_back(reinterpret_cast<PyTypeObject*>(base));
    }
    LivingObjects search(bases);
    visit_all(search);
    return search.lists().take();
  } catch (const std::exception&) {
    return out_of_memory("there is not enough memory to list the living objects: free some");
  }
}

}  // namespace mtprof
