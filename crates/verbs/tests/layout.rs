//! The structures lie in memory as a C compiler lays out those of `<infiniband/verbs.h>`.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use softfabric_verbs::abi::{CONSTANTS, layouts, verbs_context};

/// A field's C name: Rust's raw names are written with `r#`.
fn c_name(name: &str) -> &str {
    name.trim_start_matches("r#")
}

/// What newer headers have and older ones lack: left out where the compiler does not know it.
const NEWER: &[(&str, &str)] = &[
    ("struct verbs_context", "free_buf"),
    ("struct verbs_context", "alloc_buf"),
    ("struct verbs_context", "dm_export_dmabuf_fd"),
    ("struct verbs_context", "reg_mr_ex"),
    ("struct verbs_context", "dealloc_dmah"),
    ("struct verbs_context", "alloc_dmah"),
    ("struct ibv_port_attr", "active_speed_ex"),
    ("struct ibv_qp_ex", "wr_flush"),
];

#[test]
fn sizes_and_offsets_are_those_of_the_headers() {
    let test = "sizes_and_offsets_are_those_of_the_headers";
    let mut source = String::from(
        "#include <infiniband/verbs.h>\n#include <infiniband/sa.h>\n#include <rdma/ib_user_verbs.h>\n\
         #include <rdma/ib_user_sa.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for layout in layouts() {
        let structure = layout.structure;
        writeln!(
            source,
            "printf(\"{structure} sizeof %zu\\n\", sizeof({structure}));"
        )
        .unwrap();
        for (field, _) in layout.fields {
            let field = c_name(field);
            if !NEWER.contains(&(structure, field)) {
                writeln!(
                    source,
                    "printf(\"{structure} {field} %zu\\n\", offsetof({structure}, {field}));"
                )
                .unwrap();
            }
        }
    }
    for (name, _) in CONSTANTS {
        writeln!(source, "printf(\"enum {name} value %d\\n\", (int){name});").unwrap();
    }
    source.push_str("return 0; }\n");
    let Some(program) = support::compile(test, "layout", &source) else {
        return;
    };
    let output = Command::new(program).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("it prints ASCII");
    let judge: BTreeMap<(String, String), i64> = text
        .lines()
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let [keyword, name, field, value] = words[..] else {
                panic!("four words: {line}");
            };
            let key = (format!("{keyword} {name}"), field.to_owned());
            (key, value.parse().expect("a number"))
        })
        .collect();

    let mut compared = 0;
    let mut wrong = Vec::new();
    for layout in layouts() {
        let ask = |field: &str| {
            judge
                .get(&(layout.structure.to_owned(), field.to_owned()))
                .copied()
        };
        // A structure that has grown is longer here; how much older headers lack says the table above.
        let size = ask("sizeof").expect("every structure is asked for");
        let older = NEWER
            .iter()
            .any(|(structure, _)| *structure == layout.structure);
        if size != layout.size as i64 && !older {
            wrong.push(format!(
                "{} has {size} bytes, and here {}",
                layout.structure, layout.size
            ));
        }
        // `verbs_context` grows at its start: offsets count from its end.
        let shift = if layout.structure == "struct verbs_context" {
            size_of::<verbs_context>() as i64 - size
        } else {
            0
        };
        for (field, offset) in layout.fields {
            let field = c_name(field);
            let Some(found) = ask(field) else { continue };
            compared += 1;
            if found + shift != *offset as i64 {
                wrong.push(format!(
                    "{}.{field} is at {found}, and here at {offset}",
                    layout.structure
                ));
            }
        }
    }
    for (name, value) in CONSTANTS {
        let found = judge.get(&(format!("enum {name}"), "value".to_owned()));
        compared += 1;
        if found != Some(&i64::from(*value)) {
            wrong.push(format!("{name} is {found:?}, and here {value}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        compared > 600,
        "{compared} comparisons are too few to have seen everything"
    );
}

/// What the newest headers say, measured once: programs of both ages find the same things at the same places.
#[test]
fn the_context_is_that_of_the_newest_headers() {
    let offset = |structure: &str, field: &str| {
        let layout = layouts()
            .iter()
            .find(|layout| layout.structure == structure)
            .expect("it is listed");
        layout
            .fields
            .iter()
            .find(|(name, _)| *name == field)
            .expect("it is listed")
            .1
    };
    assert_eq!(size_of::<verbs_context>(), 696);
    for (field, place) in [
        ("query_port", 48),
        ("advise_mr", 56),
        ("alloc_dm", 112),
        ("modify_cq", 184),
        ("query_rt_values", 240),
        ("create_cq_ex", 248),
        ("query_device_ex", 264),
        ("open_qp", 304),
        ("create_qp_ex", 312),
        ("create_srq_ex", 328),
        ("sz", 360),
        ("context", 368),
    ] {
        assert_eq!(offset("struct verbs_context", field), place, "{field}");
    }
    assert_eq!(offset("struct ibv_context", "abi_compat"), 320);
    assert_eq!(offset("struct ibv_qp_ex", "wr_flush"), 352);
}
