//! Schedules in the text form of GOAL.

use crate::{ACKNOWLEDGEMENT, AROUND, crossing, go, near, plan_beside, plan_of, real, refused};
use crate::{scenario, seconds, star, time};
use softfabric_fabric::plan::Plan;
use softfabric_units::Span;

fn plan(hosts: u32, text: &str) -> Result<Plan, String> {
    plan_of(hosts, "job.goal", text.as_bytes(), "")
}

fn takes(hosts: u32, text: &str) -> Span {
    let plan = plan(hosts, text).unwrap_or_else(|error| panic!("{error}"));
    time(&go(&plan).jobs[0])
}

#[test]
fn a_ping_pong_takes_its_crossings() {
    let text = "/* there\n and back */ num_ranks 2\n\
        rank 1 {\n recv 8b from 0 tag 3\n}\nrank 0 { // begins\n\n c: calc 5000 cpu 0\n send 8b to 1 tag 3 cpu 0 nic 0\n}\n";
    // Nothing waits for anything: the message goes at once, and its acknowledgement comes 8 ns after the calculation is over.
    let message = crossing(8 + AROUND) + crossing(ACKNOWLEDGEMENT);
    near(takes(2, text).as_seconds_f64(), message, 0.001);
    let text = "num_ranks 2\nrank 0 {\n c: calc 5000\n s: send 8b to 1 tag 3\n s requires c\n r: recv 8b from 1\n r requires s\n}\n\
        rank 1 {\n r: recv 8b from 0 tag 3\n s: send 8b to 0\n s requires r\n}\n";
    let expected = 5e-6 + 2.0 * crossing(8 + AROUND) + crossing(ACKNOWLEDGEMENT);
    near(takes(2, text).as_seconds_f64(), expected, 0.005);
}

/// Calculations of one CPU wait for each other; those of two do not.
#[test]
fn each_cpu_does_one_thing_at_a_time() {
    let with = |second: &str| {
        format!(
            "num_ranks 2\nrank 0 {{\na: calc 3000 cpu 0\nb: calc 2000 cpu {second}\nc: calc 1000\nc requires a\nc requires b\n}}"
        )
    };
    assert_eq!(takes(2, &with("0")), Span::nanos(6000));
    assert_eq!(takes(2, &with("1")), Span::nanos(4000));
}

/// What requires an operation waits for its end; what "irequires" it, for its beginning, even if that is late.
#[test]
fn beginnings_and_ends() {
    let with = |kind: &str| {
        format!(
            "num_ranks 2\nrank 0 {{\na: calc 3000\nb: calc 2000\nb requires a\nc: calc 1000 cpu 1\nc {kind} b\n}}"
        )
    };
    assert_eq!(takes(2, &with("requires")), Span::nanos(6000));
    assert_eq!(takes(2, &with("irequires")), Span::nanos(5000));
    // b is free to begin at once, but its CPU takes it up after a; c begins then, and is over after b.
    let late =
        "num_ranks 2\nrank 0 {\na: calc 3000\nb: calc 2000\nc: calc 4000 cpu 1\nc irequires b\n}";
    assert_eq!(takes(2, late), Span::nanos(7000));
    // A receive has begun before its message comes.
    let early = "num_ranks 2\nrank 0 {\nr: recv 1b from 1\nc: calc 10000\nc irequires r\n}\n\
        rank 1 {\nd: calc 50000\ns: send 1b to 0\ns requires d\n}";
    let waits = early.replace("irequires", "requires");
    let arrives = 50e-6 + crossing(4 + AROUND);
    near(takes(2, &waits).as_seconds_f64(), arrives + 10e-6, 0.001);
    near(
        takes(2, early).as_seconds_f64(),
        arrives + crossing(ACKNOWLEDGEMENT),
        0.001,
    );
    // A long chain of beginnings is done without deep recursion.
    let mut chain = "num_ranks 2\nrank 1 {\n".to_owned();
    for number in 0..20_000 {
        chain += &format!("r{number}: recv 1b from 0\n");
        if number > 0 {
            chain += &format!("r{number} irequires r{}\n", number - 1);
        }
    }
    chain += "}\nrank 0 {\n";
    for number in 0..20_000 {
        chain += &format!("s{number}: send 1b to 1\n");
        if number > 0 {
            chain += &format!("s{number} irequires s{}\n", number - 1);
        }
    }
    let chain = plan(2, &(chain + "}\n")).unwrap();
    assert_eq!(go(&chain).jobs[0].ranks.len(), 2);
}

/// Messages of two tags cross each other; of one tag, the first is for the first, as the sender can do them.
#[test]
fn tags_match_and_keep_their_order() {
    let text = "num_ranks 2\nrank 0 {\na: send 10b to 1 tag 1\nb: send 3000000b to 1 tag 2\n}\n\
        rank 1 {\nb: recv 3000000b from 0 tag 2\na: recv 10b from 0 tag 1\na requires b\n}\n";
    assert!(takes(2, text) > Span::micros(60));
    // b is sent before a, so the longer receive is for it.
    let text = "num_ranks 2\nrank 0 {\na: send 10b to 1\na requires b\nb: send 20b to 1\n}\n\
        rank 1 {\nb: recv 20b from 0\na: recv 10b from 0\na requires b\n}\n";
    takes(2, text);
    let reversed = text.replace("a requires b\n}", "b requires a\n}");
    refused(
        plan(2, &reversed),
        &[
            "job.goal:9",
            "`a` of rank 1",
            "10B",
            "at least 20B",
            "line 5",
        ],
    );
}

#[test]
fn what_has_no_other_end_is_named() {
    let head = "num_ranks 3\nrank 0 {\nl1: send 1b to 1 tag 7\n";
    refused(
        plan(3, &format!("{head}}}")),
        &[
            "job.goal:3",
            "`l1` of rank 0",
            "to rank 1 with tag 7",
            "takes 0 such",
        ],
    );
    refused(
        plan(3, &format!("{head}}}\nrank 1 {{\nrecv 1b from 0 tag 8\n}}")),
        &["job.goal:3", "`l1` of rank 0"],
    );
    refused(
        plan(3, "num_ranks 3\nrank 2 {\nr: recv 1b from 1\n}"),
        &[
            "job.goal:3",
            "`r` of rank 2",
            "from rank 1 with tag 0",
            "sends 0 such",
        ],
    );
    refused(
        plan(3, &format!("{head}l2: send 1b to 3\n}}")),
        &["job.goal:4", "`l2`", "rank 3", "0 to 2"],
    );
    refused(
        plan(2, &format!("{head}}}\nrank 1 {{\nrecv 1b from 0 tag 7\n}}")),
        &["3 ranks on 2"],
    );
}

#[test]
fn circles_are_named() {
    let own = "num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb irequires a\n}";
    refused(
        plan(2, own),
        &[
            "job.goal:3",
            "`a` of rank 0",
            "`b` of rank 0 (line 4)",
            "circle",
        ],
    );
    // Each rank sends only when it has received.
    let across = "num_ranks 2\nrank 0 {\nr: recv 1b from 1\ns: send 1b to 1\ns requires r\n}\n\
        rank 1 {\nr: recv 1b from 0\ns: send 1b to 0\ns requires r\n}";
    refused(
        plan(2, across),
        &[
            "`s` of rank 1 (line 9)",
            "`r` of rank 1 (line 8)",
            "`s` of rank 0 (line 4)",
            "circle",
        ],
    );
    // Posted receives are enough for the beginning.
    takes(2, &across.replace("requires", "irequires"));
}

#[test]
fn what_is_no_goal_is_refused_where_it_stands() {
    for (text, parts) in [
        ("rank 0 {\n}", &["job.goal:1", "`rank`", "`num_ranks`"][..]),
        ("num_ranks 0\n", &["job.goal:1", "`0`", "1 to"]),
        ("num_ranks 2\nrank 2 {\n}", &["job.goal:2", "`2`", "0 to 1"]),
        (
            "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}",
            &["job.goal:4", "rank 0", "twice"],
        ),
        (
            "num_ranks 2\nrank 0 {\na: jump 3\n}",
            &["job.goal:3", "`jump`", "`calc`"],
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 3 to 1\n}",
            &["job.goal:3", "`to`", "`b`"],
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 3b from 1\n}",
            &["job.goal:3", "`from`", "`to`"],
        ),
        (
            "num_ranks 2\nrank 0 {\nrecv 3b from -1\n}",
            &["job.goal:3", "`-1`", "comes first"],
        ),
        (
            "num_ranks 2\nrank 0 {\nrecv 3b from 1 tag -1\n}",
            &["job.goal:3", "the tag", "comes first"],
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 3b to 1 nic 1\n}",
            &["job.goal:3", "the NIC is 1", "one NIC"],
        ),
        (
            "num_ranks 2\nrank 0 {\ncalc 3 tag 1\n}",
            &["job.goal:3", "`tag`", "cpu"],
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 3\na: calc 4\n}",
            &["job.goal:4", "label `a`", "line 3"],
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 3\na requires b\n}",
            &["job.goal:4", "label `b`"],
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 3\n",
            &["job.goal:4", "the end of the file"],
        ),
        (
            "num_ranks 2\nrank 0 {\n/* a\n}",
            &["job.goal:3", "a comment"],
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 3 ü\n}",
            &["job.goal:3", "`ü`"],
        ),
    ] {
        refused(plan(2, text), parts);
    }
}

/// Ten times two rounds: each as long as the inside and the border take, because 64 kB come faster than the inside is done.
#[test]
fn communication_is_hidden_behind_the_inside() {
    let (plan, results) = scenario("trace_goal");
    assert_eq!(plan.jobs[0].phases.len(), 10);
    let last = results.jobs[0].phases[9].over.unwrap();
    // The sends of the last round are acknowledged before its inside is done.
    assert_eq!(
        last.since(softfabric_units::Time::ZERO),
        Span::micros(22) * 20
    );
}

/// A message of one byte goes down a binomial tree of depth five.
#[test]
fn a_real_broadcast_takes_its_depth() {
    let Some(folder) = real("goal") else {
        return;
    };
    let text = star(32, "trace = \"binary_tree_32.goal\"");
    let results = go(&plan_beside(&folder, &text).unwrap());
    // One byte is padded to four. On its way each message waits for four others at most, 2 ns each.
    let expected = 5.0 * crossing(4 + AROUND) + crossing(ACKNOWLEDGEMENT);
    near(seconds(&results), expected, 0.002);
}
