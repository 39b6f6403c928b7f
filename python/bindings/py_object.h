// Objects of Python as values of C++, by the limited API of Python 3.9: part of
// py.h. Everything here needs the GIL.
#pragma once

#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace xccl::python::py {

// A value of Python that is none of the type that is wanted.
struct cast_error : std::runtime_error {
  explicit cast_error(const std::string& wanted) : std::runtime_error("expected " + wanted) {}
};

template <typename T>
T FromPython(PyObject* from);

// A reference that does not own.
class handle {
 public:
  handle() = default;
  explicit handle(PyObject* object) : object_(object) {}
  PyObject* ptr() const { return object_; }
  bool is_none() const { return object_ == Py_None; }
  template <typename T>
  T cast() const {
    return FromPython<T>(object_);
  }

 protected:
  PyObject* object_ = nullptr;
};

// A reference that owns.
class object : public handle {
 public:
  object() = default;
  object(const object& other) : handle(other.object_) { Py_XINCREF(object_); }
  object(object&& other) noexcept : handle(std::exchange(other.object_, nullptr)) {}
  object& operator=(object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~object() { Py_XDECREF(object_); }
  static object Steal(PyObject* own);  // throws the error of Python where there is none
  static object Borrow(PyObject* theirs) {
    Py_INCREF(theirs);
    return Steal(theirs);
  }
  PyObject* release() { return std::exchange(object_, nullptr); }
  object attr(const char* name) const;
  template <typename... Args>
  object operator()(Args&&... args) const;
};

// An error of Python as an exception of C++.
class error_already_set : public std::exception {
 public:
  error_already_set() : error_(std::make_shared<Error>()) {
    PyErr_Fetch(&error_->type, &error_->value, &error_->trace);
  }
  bool matches(PyObject* type) const { return PyErr_GivenExceptionMatches(error_->type, type) != 0; }
  void restore() {
    PyErr_Restore(std::exchange(error_->type, nullptr), std::exchange(error_->value, nullptr),
                  std::exchange(error_->trace, nullptr));
  }
  const char* what() const noexcept override { return "an error of Python"; }

 private:
  struct Error {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    Error() = default;
    Error(const Error&) = delete;
    Error& operator=(const Error&) = delete;
    ~Error() {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
    }
  };
  std::shared_ptr<Error> error_;
};

inline object object::Steal(PyObject* own) {
  if (own == nullptr) throw error_already_set();
  object made;
  made.object_ = own;
  return made;
}
inline object object::attr(const char* name) const { return Steal(PyObject_GetAttrString(object_, name)); }

inline object none() { return object::Borrow(Py_None); }

template <typename T>
object ToPython(T&& value);

// An object of a type that Python has.
template <int (*Check)(PyObject*)>
class Typed : public object {
 public:
  Typed() = default;
  explicit Typed(object made) : object(std::move(made)) {}
  static bool Is(PyObject* from) { return Check(from) != 0; }
};
inline int IsText(PyObject* from) { return PyUnicode_Check(from); }
inline int IsBytes(PyObject* from) { return PyBytes_Check(from); }
inline int IsDict(PyObject* from) { return PyDict_Check(from); }
inline int IsList(PyObject* from) { return PyList_Check(from); }
inline int IsTuple(PyObject* from) { return PyTuple_Check(from); }
inline int IsAny(PyObject*) { return 1; }

class str : public Typed<IsText> {
  using Typed::Typed;
};
class bytes : public Typed<IsBytes> {
 public:
  using Typed::Typed;
  explicit bytes(const std::string& text)
      : Typed(Steal(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())))) {}
};
class tuple : public Typed<IsTuple> {
 public:
  using Typed::Typed;
  size_t size() const { return static_cast<size_t>(PyTuple_Size(object_)); }
  object operator[](size_t at) const { return Borrow(PyTuple_GetItem(object_, static_cast<Py_ssize_t>(at))); }
};
class list : public Typed<IsList> {
 public:
  list() : Typed(Steal(PyList_New(0))) {}
  explicit list(object made) : Typed(std::move(made)) {}
  size_t size() const { return static_cast<size_t>(PyList_Size(object_)); }
  object operator[](size_t at) const { return Borrow(PyList_GetItem(object_, static_cast<Py_ssize_t>(at))); }
  template <typename T>
  void append(T&& value) {
    if (PyList_Append(object_, ToPython(std::forward<T>(value)).ptr()) != 0) throw error_already_set();
  }
};
class dict : public Typed<IsDict> {
 public:
  dict() : Typed(Steal(PyDict_New())) {}
  explicit dict(object made) : Typed(std::move(made)) {}
  struct Item {
    PyObject* whole;
    const char* name;
    template <typename T>
    void operator=(T&& value) const {
      if (PyDict_SetItemString(whole, name, ToPython(std::forward<T>(value)).ptr()) != 0)
        throw error_already_set();
    }
  };
  Item operator[](const char* name) { return {object_, name}; }
};
// A column of numpy.
class array : public Typed<IsAny> {
  using Typed::Typed;
};

template <typename... Args>
tuple make_tuple(Args&&... args) {
  tuple made(object::Steal(PyTuple_New(sizeof...(Args))));
  Py_ssize_t at = 0;
  (PyTuple_SetItem(made.ptr(), at++, ToPython(std::forward<Args>(args)).release()), ...);
  return made;
}
template <typename... Args>
object object::operator()(Args&&... args) const {
  return Steal(PyObject_CallObject(object_, make_tuple(std::forward<Args>(args)...).ptr()));
}
inline object Import(const char* module, const char* name) {
  return object::Steal(PyImport_ImportModule(module)).attr(name);
}

// Other threads of Python run while it lives.
class gil_scoped_release {
 public:
  gil_scoped_release() : state_(PyEval_SaveThread()) {}
  ~gil_scoped_release() { PyEval_RestoreThread(state_); }
  gil_scoped_release(const gil_scoped_release&) = delete;
  gil_scoped_release& operator=(const gil_scoped_release&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace xccl::python::py
