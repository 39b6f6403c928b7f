// The page that shows a plan in a browser or a notebook.
#include "pipeline/view/view.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bindings.h"
#include "python/bindings/options.h"

namespace xccl::python {
namespace {

// `page`: the bundled page, with its mark.
py::str ViewPageOf(const SharedPlan& plan, const std::string& page, const std::string& name,
                   const std::string& command, std::optional<double> time_limit_s) {
  std::optional<MachineModel> machine;
  if (const std::string& known = plan->plan.made_by.machine; !known.empty()) machine = MachineOf(known);
  return TextOf(Watched({}, [=, deadline = Deadline(time_limit_s)](const Caller&) -> StatusOr<std::string> {
    ViewOptions options;
    options.machine = machine ? &*machine : nullptr;
    options.links_alone = plan->no_machine.empty();
    options.deadline = deadline;
    std::vector<PlanView> views(1);
    XCCL_ASSIGN_OR_RETURN(views[0], ViewPlan(plan->plan, name, options));
    return ViewPage(page, views, name, command);
  }));
}

}  // namespace

void BindView(py::module_& module) { module.def("view_page", &ViewPageOf); }

}  // namespace xccl::python
