// Values and functions of C++ for Python, by the limited API of Python 3.9: one
// module serves every later Python. Names and their meanings are those of
// pybind11, which needs a module for each version. Everything here needs the
// GIL, unless it says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "python/bindings/py_cast.h"
#include "python/bindings/py_object.h"

namespace xccl::python::py {

// An argument of a function while it is called. Classes of C++ are passed as
// they are, others as copies.
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

// Calls the function with the arguments of a tuple; those that are missing at
// its end are None.
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

// The constructor of a value for __init__, and the two ways between a value and its
// state.
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
  // The type that an object holds, taken from the function that makes it.
  template <typename F>
  static Maker Making(F make) {
    return [body = MakeBody(make)](PyObject* given) { return HeldBy<T>(body(given).ptr()); };
  }
  // A method that makes what its object holds.
  void SetHeld(const char* name, const Maker& make) {
    SetAttr(type().ptr(), name, Function([make](PyObject* given) {
              PyObject* const self = PyTuple_Size(given) > 0 ? PyTuple_GetItem(given, 0) : Py_None;
              if (!PyObject_TypeCheck(self, type_of<T>)) throw cast_error("an object of the module");
              const object rest = object::Steal(PyTuple_GetSlice(given, 1, PyTuple_Size(given)));
              reinterpret_cast<Instance*>(self)->held = make(rest.ptr());
              return none();
            }));
  }
};

// Sets the error of Python for the exception that is being handled. The module
// says what its own are.
void SetErrorOfException();

}  // namespace xccl::python::py
