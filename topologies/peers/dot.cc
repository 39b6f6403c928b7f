// A recursive parser: a token, then a statement at a time. Defaults are scoped by braces, as in Graphviz.
#include "topologies/peers/dot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "topologies/families/networks.h"
#include "topologies/peers/graph.h"

namespace xccl {
namespace {

constexpr int kMostNested = 100;

struct Token {
  enum class Kind : uint8_t { kEnd, kId, kHtml, kSymbol } kind = Kind::kEnd;
  std::string text;     // a symbol is one of { } [ ] ; , = : + -> --
  bool quoted = false;  // an id in quotes is no keyword
  size_t offset = 0;
  bool Is(std::string_view symbol) const { return kind == Kind::kSymbol && text == symbol; }
  bool IsWord(std::string_view keyword) const {
    return kind == Kind::kId && !quoted && text.size() == keyword.size() &&
           std::ranges::equal(text, keyword, [](unsigned char a, char b) { return std::tolower(a) == b; });
  }
};

bool IsIdCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 128;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // Errors: the text with its offset in `at`.
  StatusOr<Token> Next() {
    SkipBlanks();
    Token token;
    token.offset = at_;
    if (at_ >= text_.size()) return token;
    const std::string_view rest = text_.substr(at_);
    if (rest[0] == '"') return Quoted(std::move(token));
    if (rest[0] == '<') return Html(std::move(token));
    if (rest.starts_with("->") || rest.starts_with("--")) return Symbol(std::move(token), 2);
    if (std::string_view("{}[];,=:+").find(rest[0]) != std::string_view::npos)
      return Symbol(std::move(token), 1);
    token.kind = Token::Kind::kId;
    const bool number = rest[0] == '-' || rest[0] == '.' || std::isdigit(static_cast<unsigned char>(rest[0]));
    size_t end = number ? 1 : 0;
    while (end < rest.size() && (IsIdCharacter(rest[end]) || (number && rest[end] == '.'))) ++end;
    if (end == 0)
      return InvalidInput(fmt::format("'{}'; expected an id or a statement", Cleaned(rest.substr(0, 1))));
    token.text = rest.substr(0, end);
    at_ += end;
    return token;
  }
  size_t at() const { return at_; }

 private:
  void SkipBlanks() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      size_t end = 0;
      if (std::isspace(static_cast<unsigned char>(rest[0])) != 0) {
        end = 1;
      } else if (rest.starts_with("//") || (rest[0] == '#' && (at_ == 0 || text_[at_ - 1] == '\n'))) {
        end = std::min(rest.find('\n'), rest.size());
      } else if (rest.starts_with("/*")) {
        const size_t close = rest.find("*/", 2);
        end = close == std::string_view::npos ? rest.size() : close + 2;
      } else {
        return;
      }
      at_ += end;
    }
  }
  Token Symbol(Token token, size_t length) {
    token.kind = Token::Kind::kSymbol;
    token.text = text_.substr(at_, length);
    at_ += length;
    return token;
  }
  StatusOr<Token> Quoted(Token token) {
    token.kind = Token::Kind::kId;
    token.quoted = true;
    for (size_t i = at_ + 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        at_ = i + 1;
        return token;
      }
      const char next = i + 1 < text_.size() ? text_[i + 1] : '\0';
      const bool escapes = text_[i] == '\\' && (next == '"' || next == '\\' || next == '\n');
      if (escapes) ++i;
      if (!escapes || next != '\n') token.text += text_[i];
    }
    return InvalidInput("a text in quotes that does not end; expected a quote behind it");
  }
  StatusOr<Token> Html(Token token) {
    token.kind = Token::Kind::kHtml;
    int open = 0;
    for (size_t i = at_; i < text_.size(); ++i) {
      open += text_[i] == '<' ? 1 : text_[i] == '>' ? -1 : 0;
      if (open > 0) continue;
      at_ = i + 1;
      return token;
    }
    return InvalidInput("a text in < > that does not end; expected '>'");
  }

  std::string_view text_;
  size_t at_ = 0;
};

class DotParser {
 public:
  DotParser(std::string_view text, std::string_view file) : text_(text), file_(file), lexer_(text) {}

  StatusOr<PeerGraph> Parse() {
    XCCL_RETURN_IF_ERROR(Advance());
    strict_ = token_.IsWord("strict");
    if (strict_) XCCL_RETURN_IF_ERROR(Advance());
    directed_ = token_.IsWord("digraph");
    if (!directed_ && !token_.IsWord("graph")) return Expected("graph or digraph");
    XCCL_RETURN_IF_ERROR(Advance());
    graph_.format = "Graphviz";
    graph_.name = std::filesystem::path(file_).stem().string();
    if (token_.kind == Token::Kind::kId) {
      if (!token_.text.empty()) graph_.name = token_.text;
      XCCL_RETURN_IF_ERROR(Advance());
    }
    XCCL_RETURN_IF_ERROR(Block(Scope{}, nullptr));
    Finish();
    return std::move(graph_);
  }

 private:
  struct Scope {
    GraphAttributes node, edge;
    std::string host;  // the label of the nearest cluster
    bool cluster = false;
    int depth = 0;
  };
  using Nodes = std::vector<size_t>;

  Status Bad(size_t offset, std::string_view message) const {
    return InvalidAt(LocationOfOffset(file_, text_, offset), message);
  }
  Status Expected(std::string_view what) const {
    return Bad(token_.offset, token_.kind == Token::Kind::kEnd
                                  ? fmt::format("the file ends; expected {}", what)
                                  : fmt::format("'{}'; expected {}", Cleaned(token_.text, 40), what));
  }
  Status Advance() {
    StatusOr<Token> token = lexer_.Next();
    if (!token.ok()) return Bad(lexer_.at(), token.status().message());
    token_ = *std::move(token);
    return OkStatus();
  }
  Status Take(std::string_view symbol) {
    if (!token_.Is(symbol)) return Expected(fmt::format("'{}'", symbol));
    return Advance();
  }

  // "{ ... }". The nodes within are added to `nodes`, if it is given.
  Status Block(Scope scope, Nodes* nodes) {
    if (++scope.depth > kMostNested) return Bad(token_.offset, "subgraphs within subgraphs too deep");
    XCCL_RETURN_IF_ERROR(Take("{"));
    Nodes members;
    while (!token_.Is("}")) XCCL_RETURN_IF_ERROR(Statement(scope, members));
    XCCL_RETURN_IF_ERROR(Advance());
    if (scope.cluster && !scope.host.empty())
      for (const size_t node : members) hosts_.emplace(node, scope.host);
    if (nodes != nullptr) nodes->insert(nodes->end(), members.begin(), members.end());
    return OkStatus();
  }

  Status Statement(Scope& scope, Nodes& members) {
    if (token_.Is(";")) return Advance();
    for (const std::string_view word : {"graph", "node", "edge"}) {
      if (!token_.IsWord(word)) continue;
      XCCL_RETURN_IF_ERROR(Advance());
      GraphAttributes own;
      GraphAttributes& target = word == "node" ? scope.node : word == "edge" ? scope.edge : own;
      XCCL_RETURN_IF_ERROR(Attributes(target));
      for (auto& [name, value] : own) SetOfGraph(scope, name, std::move(value));
      return OkStatus();
    }
    XCCL_ASSIGN_OR_RETURN(End first, ReadEnd(scope));
    if (token_.Is("=") && first.name) {
      XCCL_RETURN_IF_ERROR(Advance());
      if (token_.kind != Token::Kind::kId && token_.kind != Token::Kind::kHtml) return Expected("a value");
      SetOfGraph(scope, *first.name, token_.text);
      return Advance();
    }
    XCCL_RETURN_IF_ERROR(Resolve(first, scope));
    members.insert(members.end(), first.nodes.begin(), first.nodes.end());
    if (!token_.Is("->") && !token_.Is("--")) {
      GraphAttributes own;
      XCCL_RETURN_IF_ERROR(Attributes(own));
      for (const size_t node : first.nodes)
        for (const auto& [name, value] : own) graph_.nodes[node].attributes[name] = value;
      return OkStatus();
    }
    return Edges(std::move(first), scope, members);
  }

  // One end of an edge, or a statement's first word: a node that is perhaps not known yet, or a subgraph.
  struct End {
    std::optional<std::string> name;
    Nodes nodes;
  };
  // Adds the texts behind, as in "a" + "b".
  Status Join(std::string& text) {
    while (token_.Is("+")) {
      XCCL_RETURN_IF_ERROR(Advance());
      if (token_.kind != Token::Kind::kId) return Expected("a text behind '+'");
      text += token_.text;
      XCCL_RETURN_IF_ERROR(Advance());
    }
    return OkStatus();
  }
  StatusOr<End> ReadEnd(Scope& scope) {
    End end;
    if (token_.IsWord("subgraph") || token_.Is("{")) {
      Scope inner = scope;
      inner.cluster = false;
      if (token_.IsWord("subgraph")) {
        XCCL_RETURN_IF_ERROR(Advance());
        if (token_.kind == Token::Kind::kId) {
          inner.cluster = token_.text.starts_with("cluster");
          XCCL_RETURN_IF_ERROR(Advance());
        }
      }
      if (inner.cluster) inner.host.clear();
      XCCL_RETURN_IF_ERROR(Block(inner, &end.nodes));
      return end;
    }
    if (token_.kind != Token::Kind::kId) return Expected("a node, a subgraph or an attribute");
    end.name = token_.text;
    XCCL_RETURN_IF_ERROR(Advance());
    XCCL_RETURN_IF_ERROR(Join(*end.name));
    while (token_.Is(":")) {  // ports
      XCCL_RETURN_IF_ERROR(Advance());
      if (token_.kind != Token::Kind::kId) return Expected("a port");
      XCCL_RETURN_IF_ERROR(Advance());
    }
    return end;
  }

  Status Resolve(End& end, const Scope& scope) {
    if (!end.name) return OkStatus();
    const auto [found, added] = places_.emplace(*end.name, graph_.nodes.size());
    if (added && std::ssize(graph_.nodes) == kMaxNodes)
      return Bad(token_.offset, fmt::format("too many nodes; expected at most {}", kMaxNodes));
    if (added) XCCL_RETURN_IF_ERROR(Count(1, scope.node, token_.offset));
    if (added) graph_.nodes.push_back(GraphNode{*end.name, scope.node});
    end.nodes = {found->second};
    return OkStatus();
  }

  // Errors: too many bytes of attributes that the text does not have itself.
  Status Count(int64_t copies, const GraphAttributes& attributes, size_t offset) {
    copied_bytes_ += CappedProduct(copies, BytesOf(attributes));
    if (copied_bytes_ <= kMostCopiedBytes) return OkStatus();
    return Bad(offset, "more than 256 MiB of attributes by default; expected fewer or shorter ones");
  }

  // "-> end -> end [attributes]".
  Status Edges(End first, Scope& scope, Nodes& members) {
    std::vector<End> ends;
    ends.push_back(std::move(first));
    const size_t offset = token_.offset;
    while (token_.Is("->") || token_.Is("--")) {
      if (token_.Is("->") != directed_) return Expected(directed_ ? "'->' in a digraph" : "'--' in a graph");
      XCCL_RETURN_IF_ERROR(Advance());
      XCCL_ASSIGN_OR_RETURN(End end, ReadEnd(scope));
      XCCL_RETURN_IF_ERROR(Resolve(end, scope));
      members.insert(members.end(), end.nodes.begin(), end.nodes.end());
      ends.push_back(std::move(end));
    }
    GraphAttributes attributes = scope.edge;
    XCCL_RETURN_IF_ERROR(Attributes(attributes));
    const auto dir = attributes.find("dir");
    const std::string way = dir == attributes.end() ? "forward" : dir->second;
    for (size_t e = 0; e + 1 < ends.size(); ++e) {
      const int64_t more = CappedProduct(std::ssize(ends[e].nodes), std::ssize(ends[e + 1].nodes));
      if (std::ssize(graph_.edges) + more > kMaxLinks)
        return Bad(offset, fmt::format("too many edges; expected at most {}", kMaxLinks));
      XCCL_RETURN_IF_ERROR(Count(1, scope.edge, offset));
      XCCL_RETURN_IF_ERROR(Count(std::max<int64_t>(more - 1, 0), attributes, offset));
      for (const size_t from : ends[e].nodes)
        for (const size_t to : ends[e + 1].nodes) {
          GraphEdge edge{from, to, !directed_ || way == "none" || way == "both", attributes};
          if (directed_ && way == "back") std::swap(edge.from, edge.to);
          if (!strict_ || seen_.emplace(from, to).second) graph_.edges.push_back(std::move(edge));
        }
    }
    return OkStatus();
  }

  // Any number of "[name=value, ...]"; those in HTML are left out.
  Status Attributes(GraphAttributes& attributes) {
    while (token_.Is("[")) {
      XCCL_RETURN_IF_ERROR(Advance());
      while (!token_.Is("]")) {
        if (token_.Is(",") || token_.Is(";")) {
          XCCL_RETURN_IF_ERROR(Advance());
          continue;
        }
        if (token_.kind != Token::Kind::kId) return Expected("an attribute or ']'");
        const std::string name = token_.text;
        XCCL_RETURN_IF_ERROR(Advance());
        std::string value = "true";
        if (token_.Is("=")) {
          XCCL_RETURN_IF_ERROR(Advance());
          if (token_.kind != Token::Kind::kId && token_.kind != Token::Kind::kHtml)
            return Expected("a value");
          value = token_.text;
          XCCL_RETURN_IF_ERROR(Advance());
          XCCL_RETURN_IF_ERROR(Join(value));
        }
        attributes[name] = std::move(value);
      }
      XCCL_RETURN_IF_ERROR(Advance());
    }
    return OkStatus();
  }

  void SetOfGraph(Scope& scope, const std::string& name, std::string value) {
    if (scope.depth == 1)
      graph_.attributes[name] = std::move(value);
    else if (name == "label" && scope.cluster)
      scope.host = std::move(value);
  }

  void Finish() {
    bool guessed = false;
    for (const auto& [node, host] : hosts_) {
      GraphAttributes& attributes = graph_.nodes[node].attributes;
      const bool ours = attributes.contains("kind") && attributes.contains("name");
      if (!ours && attributes.emplace("host", host).second) guessed = true;
    }
    if (guessed) graph_.warnings.push_back(fmt::format("{}: clusters with a label are read as hosts", file_));
  }

  std::string_view text_, file_;
  Lexer lexer_;
  Token token_;
  bool strict_ = false, directed_ = false;
  std::map<std::string, size_t> places_;
  std::map<size_t, std::string> hosts_;
  std::set<std::pair<size_t, size_t>> seen_;
  int64_t copied_bytes_ = 0;
  PeerGraph graph_;
};

}  // namespace

bool IsDot(std::string_view text) {
  Lexer lexer(text);
  StatusOr<Token> token = lexer.Next();
  if (token.ok() && token->IsWord("strict")) token = lexer.Next();
  if (!token.ok() || (!token->IsWord("graph") && !token->IsWord("digraph"))) return false;
  token = lexer.Next();
  if (token.ok() && token->kind == Token::Kind::kId) token = lexer.Next();
  return token.ok() && token->Is("{");
}

StatusOr<Topology> ReadDot(std::string_view text, std::string_view file, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const PeerGraph graph, DotParser(text, file).Parse());
  return GraphTopology(graph, file, options);
}

}  // namespace xccl
