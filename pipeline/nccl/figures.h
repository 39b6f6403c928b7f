// The constants by which NCCL 2.30 searches channels (src/graph/search.cc) and estimates times
// (src/graph/tuning.cc). They are copied from NCCL's sources; XCCL measured or tuned none of them.
#pragma once

#include <cstdint>

namespace xccl::nccl {

// The constants of one generation of GPUs. A list of bandwidths begins with the largest; 0 ends the list.
struct GenerationFigures {
  double intra_gb_per_s[20];  // bandwidths of a channel that NCCL tries within a host
  double inter_gb_per_s[20];  // bandwidths of a channel that NCCL tries between hosts
  // Upper limits in GB/s on one host, on two hosts, and on more hosts. most_ll limits all channels together;
  // the other arrays limit one channel.
  double most_ll[3], most_ring_ll128[3], most_tree_ll128[3], most_tree[3];
  double nvls_share;  // share of the links' bandwidth that NVLS reaches
};

struct Figures {
  GenerationFigures generations[4];  // by Generation
  int32_t most_channels;             // most channels of rings or of trees: half of MAXCHANNELS
  int32_t nvls_channels;
  double least_share;  // NCCL tries no bandwidth below this share of the largest bandwidth that fits
  // Latencies in microseconds by algorithm (tree, ring, CollNet direct and chain, NVLS, NVLS tree, PAT) and
  // protocol (LL, LL128, simple). base_us is that of a call. hop_us is that of a hop over NVLink, over PCIe
  // and over a network. A hop of 0: NCCL lacks this combination.
  double base_us[7][3], hop_us[3][7][3];
  double network_us;  // the cost of a network message on hosts with Intel CPUs
  // Share of its bandwidth that a tree reaches, by protocol and by size: from 64, 128, 256, ... bytes on.
  double tree_share[3][22];
};

inline constexpr Figures kFigures = {
    .generations =
        {{.intra_gb_per_s = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
          .inter_gb_per_s = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12},
          .most_ll = {39, 39, 20.4},
          .most_ring_ll128 = {20, 20, 20},
          .most_tree_ll128 = {20, 20, 20},
          .most_tree = {26.5, 18.5, 10},
          .nvls_share = 0},
         {.intra_gb_per_s = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
          .inter_gb_per_s = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12},
          .most_ll = {87.7, 22.5, 19},
          .most_ring_ll128 = {20, 20, 20},
          .most_tree_ll128 = {20, 20, 20},
          .most_tree = {24, 23.6, 17.8},
          .nvls_share = 0},
         {.intra_gb_per_s = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
          .inter_gb_per_s = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12},
          .most_ll = {141, 45, 35},
          .most_ring_ll128 = {36.7, 36.7, 36.7},
          .most_tree_ll128 = {36.7, 36.7, 29},
          .most_tree = {38.7, 41.4, 36},
          .nvls_share = .85},
         {.intra_gb_per_s = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18},
          .inter_gb_per_s = {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12},
          .most_ll = {282, 90, 70},
          .most_ring_ll128 = {40, 40, 40},
          .most_tree_ll128 = {55.6, 31.67, 20},
          .most_tree = {70, 42.8, 24},
          .nvls_share = .74}},
    .most_channels = 32,
    .nvls_channels = 16,
    .least_share = .49,
    .base_us = {{6.8, 14, 8.4}, {6.6, 14, 8.4}, {}, {}, {}, {}, {8, 8, 8}},
    .hop_us = {{{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}},
               {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}},
               {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}},
    .network_us = 1,
    .tree_share = {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1},
                   {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1},
                   {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9}},
};

}  // namespace xccl::nccl
