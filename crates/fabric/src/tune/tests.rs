//! The search repairs what is badly tuned, and what it writes is what it ran.

use super::*;

const BAD: &str = include_str!("../../../../scenarios/tune_pauses_first.toml");

fn search(text: &str, budget: u32, threads: usize) -> Tuned {
    let request = Request { budget, seeds: 1 };
    let search = Search::new(text, "bad.toml", request).unwrap_or_else(|error| panic!("{error}"));
    let tuned = search.run(threads, &AtomicBool::new(false), &|_| {});
    tuned.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_pauses_first_marks_first_afterwards() {
    let tuned = search(BAD, 48, 2);
    let (start, best) = (tuned.start.worth, tuned.best.worth);
    assert!(
        start.pause_frames > 100.0 && start.marks < start.pause_frames,
        "{start:?}"
    );
    assert!(best.pause_frames < start.pause_frames / 5.0, "{best:?}");
    assert!(
        best.marks > best.pause_frames,
        "marks do the work now: {best:?}"
    );
    assert!(best.tail_ns < start.tail_ns * 1.1, "{best:?}");
    assert_eq!((start.marked_first, best.marked_first), (0.0, 1.0));
    assert!(best.failed == 0.0 && best.drops == 0.0);
    let (start, best) = (tuned.start_held_out.unwrap(), tuned.best_held_out.unwrap());
    assert!(
        best.paused_ns < start.paused_ns / 2.0,
        "seeds that it has not seen: {start:?} {best:?}"
    );
    assert!(tuned.simulations <= 48);
}

#[test]
fn what_is_written_runs_to_the_same_figures() {
    let tuned = search(BAD, 12, 1);
    let again = Search::new(
        &tuned.text,
        "tuned.toml",
        Request {
            budget: 12,
            seeds: 1,
        },
    )
    .unwrap();
    let runs = Runs {
        search: &again,
        interrupt: &AtomicBool::new(false),
        done: &|_| {},
        count: AtomicUsize::new(0),
        known: Mutex::default(),
    };
    let scenario = Scenario::from_toml(&tuned.text, "tuned.toml").unwrap();
    assert_eq!(runs.one(scenario, 1), Some(tuned.best.worth));
    assert!(
        tuned.text.starts_with("# A badly tuned fabric"),
        "comments stay"
    );
    for setting in &tuned.best.settings {
        assert!(tuned.text.contains(&setting.value), "{setting}");
    }
}

#[test]
fn threads_change_nothing() {
    let (one, three) = (search(BAD, 18, 1), search(BAD, 18, 3));
    assert_eq!(one.best, three.best);
    assert_eq!(one.front, three.front);
}

#[test]
fn the_search_begins_at_the_scenario() {
    let search = Search::new(
        BAD,
        "bad.toml",
        Request {
            budget: 12,
            seeds: 1,
        },
    )
    .unwrap();
    let settings = search.space.settings(&search.space.start());
    let value = |name: &str| {
        let found = settings
            .iter()
            .find(|setting| setting.field.ends_with(name));
        found
            .map(|setting| setting.value.clone())
            .unwrap_or_default()
    };
    assert_eq!(value("alpha"), "1/64");
    assert_eq!(value("kmin").replace(' ', ""), "4MB");
    assert_eq!(value("kmax").replace(' ', ""), "8MB");
    assert_eq!(value("pmax"), "0.1");
}

#[test]
fn what_has_nothing_to_tune_says_so() {
    let request = Request {
        budget: 100,
        seeds: 1,
    };
    let refused = |text: &str, request| {
        Search::new(text, "x.toml", request)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let infiniband = "[fabric]\nkind = \"infiniband\"\n[topology]\nkind = \"star\"\nhosts = 3\n[[workload]]\nkind = \"incast\"\nbytes = \"1MB\"\n";
    assert!(refused(infiniband, request).contains("RoCE"));
    let idle = "[topology]\nkind = \"star\"\nhosts = 3\n";
    assert!(refused(idle, request).contains("no traffic"));
    let small = refused(
        BAD,
        Request {
            budget: 10,
            seeds: 2,
        },
    );
    assert!(small.contains("at least 24"), "{small}");
}

#[test]
fn the_front_has_what_nothing_beats() {
    let point = |tail: f64, paused: f64, throughput: f64| Point {
        settings: Vec::new(),
        worth: Worth {
            tail_ns: tail,
            paused_ns: paused,
            throughput_bps: throughput,
            failed: 0.0,
            ..Worth::NOTHING
        },
    };
    let (a, b, c) = (
        point(1.0, 5.0, 9.0),
        point(2.0, 1.0, 9.0),
        point(2.0, 5.0, 9.0),
    );
    let found = front(&[c.clone(), b.clone(), a.clone()]);
    assert_eq!(found, [a.clone(), b.clone()]);
    assert_eq!(
        best(&found, &c.worth),
        Some(&b),
        "0.2 of the pause is worth more than half of the tail"
    );
}
