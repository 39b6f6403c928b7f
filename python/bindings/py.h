// Values and functions of C++ for Python, by the limited API of Python 3.9: one module serves every later
// Python. Names and their meanings are those of pybind11, which needs a module for each version.
// Everything here needs the GIL, unless it says so.
#pragma once

#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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

// An object of a class of C++: it shares the ownership of the value.
struct Instance {
  PyObject_HEAD std::shared_ptr<void> held;
};
template <typename T>
inline PyTypeObject* type_of = nullptr;  // set once, when the class is bound

template <typename T>
const std::shared_ptr<void>& HeldBy(PyObject* from) {
  if (type_of<T> == nullptr || !PyObject_TypeCheck(from, type_of<T>))
    throw cast_error("an object of the module");
  const auto& held = reinterpret_cast<Instance*>(from)->held;
  if (!held) throw cast_error("an object that is whole");
  return held;
}
PyObject* NewInstance(PyTypeObject* type);  // that holds nothing; null and an error of Python where it fails
template <typename T>
object Made(std::shared_ptr<T> value) {
  using Plain = std::remove_const_t<T>;
  if (!value) return none();
  object made = object::Steal(NewInstance(type_of<Plain>));
  reinterpret_cast<Instance*>(made.ptr())->held = std::const_pointer_cast<Plain>(std::move(value));
  return made;
}

template <typename T>
inline constexpr bool kIsObject = std::is_base_of_v<handle, T>;

// The conversions of one type: Get(PyObject*) and Make(value).
template <typename T, typename = void>
struct Caster {  // a class of C++
  static constexpr bool kIsClass = true;
  static T Get(PyObject* from) { return *static_cast<T*>(HeldBy<T>(from).get()); }
  static object Make(T value) { return Made(std::make_shared<T>(std::move(value))); }
};
template <typename T>
struct Caster<T, std::enable_if_t<kIsObject<T>>> {
  static T Get(PyObject* from) {
    if constexpr (std::is_same_v<T, object> || std::is_same_v<T, handle>) {
      return object::Borrow(from);
    } else {
      if (!T::Is(from)) throw cast_error("another type of Python");
      return T(object::Borrow(from));
    }
  }
  static object Make(T value) { return value; }
};
template <>
struct Caster<bool> {
  static bool Get(PyObject* from) {
    if (from != Py_True && from != Py_False) throw cast_error("True or False");
    return from == Py_True;
  }
  static object Make(bool value) { return object::Borrow(value ? Py_True : Py_False); }
};
template <typename T>
struct Caster<T, std::enable_if_t<std::is_integral_v<T>>> {
  static T Get(PyObject* from) {
    if (!PyLong_Check(from)) throw cast_error("a whole number");
    using Widest = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
    Widest value = 0;
    if constexpr (std::is_signed_v<T>)
      value = PyLong_AsLongLong(from);
    else
      value = PyLong_AsUnsignedLongLong(from);
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw cast_error("a smaller number");
    }
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      throw cast_error("a smaller number");
    return static_cast<T>(value);
  }
  static object Make(T value) {
    if constexpr (std::is_signed_v<T>)
      return object::Steal(PyLong_FromLongLong(value));
    else
      return object::Steal(PyLong_FromUnsignedLongLong(value));
  }
};
template <>
struct Caster<double> {
  static double Get(PyObject* from) {
    const double value = PyFloat_AsDouble(from);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw cast_error("a number");
    }
    return value;
  }
  static object Make(double value) { return object::Steal(PyFloat_FromDouble(value)); }
};
template <>
struct Caster<std::string_view> {
  static std::string_view Get(PyObject* from) {  // of bytes; valid as long as they are
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (!PyBytes_Check(from) || PyBytes_AsStringAndSize(from, &data, &size) != 0) throw cast_error("bytes");
    return {data, static_cast<size_t>(size)};
  }
  static object Make(std::string_view text) {
    return object::Steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  }
};
template <>
struct Caster<std::string> {
  static std::string Get(PyObject* from) {  // of a text or of bytes
    if (!PyUnicode_Check(from)) return std::string(Caster<std::string_view>::Get(from));
    return std::string(Caster<std::string_view>::Get(object::Steal(PyUnicode_AsUTF8String(from)).ptr()));
  }
  static object Make(std::string_view text) { return Caster<std::string_view>::Make(text); }
};
template <>
struct Caster<const char*> : Caster<std::string> {};
template <typename T>
struct Caster<std::optional<T>> {
  static std::optional<T> Get(PyObject* from) {
    if (from == Py_None) return std::nullopt;
    return FromPython<T>(from);
  }
  static object Make(std::optional<T> value) { return value ? ToPython(*std::move(value)) : none(); }
};
template <typename T>
struct Caster<std::vector<T>> {
  static std::vector<T> Get(PyObject* from) {
    if (!PySequence_Check(from) || PyUnicode_Check(from) || PyBytes_Check(from)) throw cast_error("a list");
    std::vector<T> values;
    for (Py_ssize_t i = 0; i < PySequence_Size(from); ++i)
      values.push_back(FromPython<T>(object::Steal(PySequence_GetItem(from, i)).ptr()));
    return values;
  }
  static object Make(const std::vector<T>& values) {
    list made;
    for (const T& value : values) made.append(value);
    return made;
  }
};
template <typename... Ts>
struct Caster<std::tuple<Ts...>> {
  static std::tuple<Ts...> Get(PyObject* from) {
    if (!PySequence_Check(from) || PySequence_Size(from) != sizeof...(Ts)) throw cast_error("a tuple");
    return Get(from, std::index_sequence_for<Ts...>());
  }
  template <size_t... I>
  static std::tuple<Ts...> Get(PyObject* from, std::index_sequence<I...>) {
    return {FromPython<Ts>(object::Steal(PySequence_GetItem(from, I)).ptr())...};
  }
  static object Make(const std::tuple<Ts...>& values) {
    return std::apply([](const auto&... each) { return py::make_tuple(each...); }, values);
  }
};
template <typename A, typename B>
struct Caster<std::pair<A, B>> {
  static std::pair<A, B> Get(PyObject* from) {
    auto [a, b] = FromPython<std::tuple<A, B>>(from);
    return {std::move(a), std::move(b)};
  }
  static object Make(const std::pair<A, B>& pair) { return py::make_tuple(pair.first, pair.second); }
};
template <typename T>
struct Caster<std::shared_ptr<T>> {
  static std::shared_ptr<T> Get(PyObject* from) {
    if (from == Py_None) return nullptr;
    return std::static_pointer_cast<T>(HeldBy<std::remove_const_t<T>>(from));
  }
  static object Make(std::shared_ptr<T> value) { return Made(std::move(value)); }
};
template <typename T>
struct Caster<std::unique_ptr<T>> {
  static object Make(std::unique_ptr<T> value) { return Made(std::shared_ptr<T>(std::move(value))); }
};

template <typename T>
T FromPython(PyObject* from) {
  return Caster<T>::Get(from);
}
template <typename T>
object ToPython(T&& value) {
  return Caster<std::decay_t<T>>::Make(std::forward<T>(value));
}

// An argument of a function while it is called. Classes of C++ are passed as they are, others as copies.
template <typename A, typename B = std::remove_cvref_t<A>>
struct Argument {
  explicit Argument(PyObject* from) : value(FromPython<B>(from)) {}
  A get() { return static_cast<A>(value); }
  B value;
};
template <typename A, typename B>
requires Caster<B>::kIsClass struct Argument<A, B> {
  explicit Argument(PyObject* from) : value(static_cast<B*>(HeldBy<B>(from).get())) {}
  A get() { return static_cast<A>(*value); }
  B* value;
};
template <typename T>
struct Argument<const T*, const T*> {  // null: None
  explicit Argument(PyObject* from)
      : value(from == Py_None ? nullptr : static_cast<T*>(HeldBy<T>(from).get())) {}
  const T* get() { return value; }
  T* value;
};

// Calls the function with the arguments of a tuple; those that are missing at its end are None.
template <typename R, typename... A, typename F, size_t... I>
object Call(F& function, PyObject* given, std::index_sequence<I...>) {
  const Py_ssize_t count = PyTuple_Size(given);
  if (count > static_cast<Py_ssize_t>(sizeof...(A))) throw cast_error("fewer arguments");
  [[maybe_unused]] const auto at = [&](size_t i) {
    return static_cast<Py_ssize_t>(i) < count ? PyTuple_GetItem(given, static_cast<Py_ssize_t>(i)) : Py_None;
  };
  std::tuple<Argument<A>...> arguments{Argument<A>(at(I))...};
  if constexpr (std::is_void_v<R>) {
    function(std::get<I>(arguments).get()...);
    return none();
  } else {
    return ToPython(function(std::get<I>(arguments).get()...));
  }
}

using Body = std::function<object(PyObject* arguments)>;
// A function of Python that calls the body; a method where it is in a class.
object Function(Body body);

template <typename R, typename... A>
struct Signature {
  template <typename F>
  static Body Make(F function) {
    return [function](PyObject* given) {
      return Call<R, A...>(function, given, std::index_sequence_for<A...>());
    };
  }
};
template <typename F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <typename R, typename C, typename... A>
struct SignatureOf<R (C::*)(A...) const> : Signature<R, A...> {};
template <typename R, typename... A>
struct SignatureOf<R (*)(A...)> : Signature<R, A...> {};

template <typename F>
Body MakeBody(F function) {
  return SignatureOf<F>::Make(function);
}
template <typename R, typename C, typename... A>
Body MakeBody(R (C::*function)(A...) const) {
  return MakeBody(
      [function](const C& self, A... more) -> R { return (self.*function)(std::forward<A>(more)...); });
}
template <typename R, typename C, typename... A>
Body MakeBody(R (C::*function)(A...)) {
  return MakeBody([function](C& self, A... more) -> R { return (self.*function)(std::forward<A>(more)...); });
}

inline void SetAttr(PyObject* of, const char* name, const object& value) {
  if (PyObject_SetAttrString(of, name, value.ptr()) != 0) throw error_already_set();
}

class module_ : public object {
 public:
  explicit module_(object made) : object(std::move(made)) {}
  template <typename F>
  module_& def(const char* name, F function) {
    SetAttr(ptr(), name, Function(MakeBody(function)));
    return *this;
  }
  struct Place {
    PyObject* module;
    const char* name;
    template <typename T>
    void operator=(T&& value) const {
      SetAttr(module, name, ToPython(std::forward<T>(value)));
    }
  };
  Place attr(const char* name) { return {ptr(), name}; }
};

// What makes a value for __init__, and the two ways between a value and its state.
template <typename F>
struct Init {
  F make;
};
template <typename... A>
struct InitOf {};
template <typename... A>
InitOf<A...> init() {
  return {};
}
template <typename F>
Init<F> init(F make) {
  return {make};
}
template <typename Get, typename Set>
struct Pickle {
  Get get;
  Set set;
};
template <typename Get, typename Set>
Pickle<Get, Set> pickle(Get get, Set set) {
  return {get, set};
}

// The type of a class of C++, without members.
PyTypeObject* NewType(const char* name, const char* doc);

template <typename T, typename Holder = void>
class class_ {
 public:
  class_(module_& module, const char* name, const char* doc = "") {
    type_of<T> = NewType(name, doc);
    SetAttr(module.ptr(), name, type());
  }
  template <typename F>
  class_& def(const char* name, F function, const char* = nullptr) {
    SetAttr(type().ptr(), name, Function(MakeBody(function)));
    return *this;
  }
  template <typename F>
  class_& def(Init<F> init) {
    SetHeld("__init__", Making(init.make));
    return *this;
  }
  template <typename... A>
  class_& def(InitOf<A...>) {
    return def(py::init([](A... given) { return std::make_shared<T>(std::forward<A>(given)...); }));
  }
  template <typename Get, typename Set>
  class_& def(Pickle<Get, Set> pickle) {
    def("__getstate__", pickle.get);
    SetHeld("__setstate__", Making(pickle.set));
    return *this;
  }
  template <typename F>
  class_& def_static(const char* name, F function) {
    SetAttr(type().ptr(), name, Import("builtins", "staticmethod")(Function(MakeBody(function))));
    return *this;
  }
  template <typename F>
  class_& def_property_readonly(const char* name, F get, const char* = nullptr) {
    SetAttr(type().ptr(), name, Import("builtins", "property")(Function(MakeBody(get))));
    return *this;
  }
  template <typename M>
  class_& def_readonly(const char* name, M T::*member) {
    return def_property_readonly(name, [member](const T& self) { return self.*member; });
  }
  template <typename M>
  class_& def_readwrite(const char* name, M T::*member) {
    const object get = Function(MakeBody([member](const T& self) { return self.*member; }));
    const object set = Function(MakeBody([member](T& self, M value) { self.*member = std::move(value); }));
    SetAttr(type().ptr(), name, Import("builtins", "property")(get, set));
    return *this;
  }

 private:
  using Maker = std::function<std::shared_ptr<void>(PyObject*)>;
  static object type() { return object::Borrow(reinterpret_cast<PyObject*>(type_of<T>)); }
  // What an object is to hold, of the function that makes it.
  template <typename F>
  static Maker Making(F make) {
    return [body = MakeBody(make)](PyObject* given) { return HeldBy<T>(body(given).ptr()); };
  }
  // A method that makes what its object holds.
  void SetHeld(const char* name, Maker make) {
    SetAttr(type().ptr(), name, Function([make](PyObject* given) {
              PyObject* const self = PyTuple_Size(given) > 0 ? PyTuple_GetItem(given, 0) : Py_None;
              if (!PyObject_TypeCheck(self, type_of<T>)) throw cast_error("an object of the module");
              const object rest = object::Steal(PyTuple_GetSlice(given, 1, PyTuple_Size(given)));
              reinterpret_cast<Instance*>(self)->held = make(rest.ptr());
              return none();
            }));
  }
};

// Sets the error of Python for the exception that is being handled. The module says what its own are.
void SetErrorOfException();

}  // namespace xccl::python::py
