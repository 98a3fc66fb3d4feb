//! Plans become scenario files that lead back to the same plans.

use super::*;
use crate::plan::{LinkLayer, Partitions};

/// The plan of the scenario that is made of a plan.
fn there_and_back(plan: &Plan) -> Plan {
    let text = Scenario::from_plan(plan).unwrap().to_toml();
    let scenario =
        Scenario::from_toml(&text, "again.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    scenario
        .plan()
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn everything_that_can_be_said() {
    let plan = plan(
        r#"
name = "every"
seed = 7
[fabric]
kind = "rocev1"
routing = "up_down"
[topology]
kind = "leaf_spine"
leaves = 2
hosts_per_leaf = 3
rate = "33333333333b/s"
[[link]]
between = ["h0", "leaf0"]
bit_error_rate = 1e-12
packet_error_rate = 0.00390625
[switch]
forwarding = "cut_through"
cut_through_header = "128B"
layer = "router"
cell = "1B"
headroom_pool = "4MiB"
lossless = [3, 5]
headroom = "100KB"
xon = "18KB"
xon_offset = "3KB"
load_balancing = "adaptive"
[switch.pause]
quanta = 0
response_delay = "100ns"
obeys_on_lossy = true
[switch.watchdog]
action = "alert"
[switch.class.1]
egress_alpha = "64"
weight = 9
[[switch_group]]
names = ["spine*"]
headroom_pool = "own"
ecn = []
watchdog = { enabled = false }
[host]
mtu = "1024B"
window = "1MB"
loss_recovery = "selective_repeat"
notification = "off"
acknowledgement_class = 4
arbitration = "round_robin"
lossless = [3]
pause_quanta = 0
[[host_group]]
names = ["h1", "h4"]
drain = "12Gb/s"
loss_recovery = "go_back_zero"
notification = "cnp"
[host_group.congestion_control]
kind = "dcqcn_paper"
byte_counter = "off"
restart_rate = "7Mb/s"
[[trigger]]
[[trigger]]
count = 3
repeat = true
[[workload]]
kind = "all_to_all"
bytes = "3KB"
message = "1KB"
[[workload]]
kind = "flow"
from = "h5"
to = "h0"
bytes = "5GiB"
class = 5
operation = "read"
ecn = false
start = "83.84ns"
path = ["leaf1", "spine0", "leaf0"]
[[workload]]
kind = "flows"
flow = [{ from = "h1", to = "h2", bytes = "1B", after = 1, start = "5ns", on_sent = 0, message = "1B" }]
[[event]]
kind = "link_down"
at = "1ms"
between = ["h0", "leaf0"]
[[event]]
kind = "storm"
at = "1ms"
host = "h0"
until = "3ms"
[[event]]
kind = "bit_errors"
at = "1ms"
between = ["h0", "leaf0"]
bit_error_rate = 0.25
[[event]]
kind = "drain"
at = "4ms"
hosts = ["h0", "h1"]
rate = "1Gb/s"
[[event]]
kind = "pfc_off"
at = "4ms"
[[event]]
kind = "stop_sources"
at = "5ms"
[record]
interval = "off"
ports = ["h0:0"]
captures = ["leaf0:h0"]
pause_log = true
check_wire = true
[stop]
at = "10ms"
when_done = false
"#,
    );
    assert_eq!(there_and_back(&plan), plan);
}

#[test]
fn defaults_stay_defaults() {
    let text = format!("{STAR}[[workload]]\nkind = \"incast\"\nbytes = \"1MB\"\n");
    let plan = plan(&text);
    let written = Scenario::from_plan(&plan).unwrap().to_toml();
    assert!(!written.contains("[switch"), "{written}");
    assert!(!written.contains("[host"), "{written}");
    assert_eq!(there_and_back(&plan), plan);
}

#[test]
fn presets_become_plain_settings() {
    for (switch, nic) in [
        ("sn2700", "connectx5"),
        ("arista7060x6", "connectx7"),
        ("hpcc", "hpcc"),
    ] {
        let text = format!("{STAR}[switch]\npreset = \"{switch}\"\n[host]\npreset = \"{nic}\"\n");
        let plan = plan(&text);
        assert_eq!(there_and_back(&plan), plan, "{switch}");
    }
}

#[test]
fn ports_in_another_order_than_the_links() {
    let mut plan = plan(STAR);
    plan.network.links.swap(0, 1);
    assert_ne!(plan.network.links[0].b.port.0, 0);
    assert_eq!(there_and_back(&plan), plan);
}

#[test]
fn what_no_scenario_can_say_is_refused() {
    let mut plan = plan(STAR);
    plan.switch_profiles.clear();
    let error = Scenario::from_plan(&plan).unwrap_err();
    assert_eq!(error, "there is no switch profile");
}

#[test]
fn infiniband() {
    for settings in [
        "",
        "routing = \"nue\"\n[infiniband]\nlanes = 3\nrepair = \"7ms\"\n",
        "routing = \"up_down\"\n[infiniband]\nlanes = 4\nbuffer = \"32KiB\"\nservice_levels = [0, 1, 2, 3, 3, 2, 1, 0]\nhigh_limit = \
         3\nhead_of_queue_life = \"65.536us\"\nhost_head_of_queue_life = \"8.192us\"\npacket_life = \"131.072us\"\nstall_count = 7\nstatic_rate = \"path\"\n[[infiniband.high]]\nlane = 3\nweight = 255\n[switch]\nforwarding = \
         \"store_and_forward\"\nlatency = \"90ns\"\n[host]\nmtu = \"2048B\"\n[[switch_group]]\nnames = [\"s0\"]\nlatency = \
         \"1us\"\n",
        "[infiniband.congestion_control]\n",
        "[infiniband]\npartition_enforcement = \"inbound\"\n[[infiniband.partition]]\nname = \"a\"\nkey = 5\nfull = [\"h0\"]\n\
         limited = [\"h1\"]\n[[infiniband.partition]]\nname = \"b\"\nkey = 0x7fff\nlimited = [\"h*\"]\n",
        "routing = \"up_down\"\n[infiniband]\nadaptive_routing = true\n[[infiniband.partition]]\nname = \"a\"\nkey = \
         5\nfull = [\"h0\", \"h1\"]\n[[infiniband.multicast]]\nname = \"g\"\nmembers = [\"h1\"]\nsend_only = \
         [\"h0\"]\nservice_level = 3\npartition = \"a\"\nmtu = \"512B\"\nrate = \"10Gb/s\"\n[[infiniband.multicast]]\nname \
         = \"all\"\nmembers = [\"h*\"]\n[[workload]]\nkind = \"flow\"\nfrom = \"h0\"\nto = \"g\"\nbytes = \
         \"1MB\"\n[[workload]]\nkind = \"flows\"\nflow = [{ from = \"h1\", to = \"all\", bytes = \"1KB\", message = \
         \"100B\" }, { from = \"h1\", to = \"h0\", bytes = \"1KB\", operation = \"read\", message = \"1KB\" }]\n",
        "[infiniband.congestion_control]\nthreshold = 3\npacket_size = \"1KiB\"\nmarking_rate = 65535\nvictims = \
         \"all\"\ncredit_threshold = 15\ncredit_ports = \"hosts\"\ntimer = \"1.024us\"\nincrease = 9\ntrigger = \
         0\nminimum = 1\ntable = [{ shift = 0, multiplier = 0 }, { shift = 3, multiplier = 16383 }]\n\
         [[infiniband.congestion_control.level]]\nlevel = 2\ntimer = \"0s\"\nincrease = 0\ntrigger = 7\nminimum = 0\n",
    ] {
        let text = format!("{STAR}[fabric]\nkind = \"infiniband\"\n{settings}");
        let plan = plan(&text);
        assert!(plan.link_layer.infiniband().is_some());
        assert_eq!(there_and_back(&plan), plan);
    }
}

/// Guards without partitions stop nothing, so the file says nothing of them; it is read again all the same.
#[test]
fn guards_without_partitions_are_left_out() {
    let mut guarded = plan(&format!("{STAR}[fabric]\nkind = \"infiniband\"\n"));
    let LinkLayer::Infiniband(settings) = &mut guarded.link_layer else {
        panic!("the scenario is one of InfiniBand");
    };
    settings.partitions = Some(Box::new(Partitions {
        partitions: Vec::new(),
        inbound: true,
        outbound: true,
    }));
    let again = there_and_back(&guarded);
    let settings = again.link_layer.infiniband().unwrap();
    assert_eq!(settings.partitions, None);
}
