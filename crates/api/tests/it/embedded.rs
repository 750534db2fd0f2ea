//! The embedded servers through everything that can happen to them between two starts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use api::embedded::{DataDir, Postgres, Redis};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// Open enough for the user that root hands the servers to.
fn folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o711)).tempdir().unwrap()
}

async fn start(root: &Path) -> (DataDir, Postgres) {
    let dir = DataDir::claim(root).unwrap();
    let postgres = Postgres::start(&dir).await.unwrap();
    (dir, postgres)
}

async fn run(postgres: &Postgres, statement: &'static str) {
    let mut connection = PgConnection::connect(&postgres.url()).await.unwrap();
    sqlx::query(statement).execute(&mut connection).await.unwrap();
}

fn pid_file(root: &Path) -> PathBuf {
    root.join("postgres/postmaster.pid")
}

fn server(root: &Path) -> Pid {
    let text = fs::read_to_string(pid_file(root)).unwrap();
    Pid::from_raw(text.lines().next().unwrap().parse().unwrap()).unwrap()
}

#[tokio::test]
async fn a_second_start_finds_the_data_of_the_first() {
    let folder = folder();
    let (dir, postgres) = start(folder.path()).await;
    run(&postgres, "create table kept (id int)").await;
    postgres.stop().await.unwrap();
    assert!(!pid_file(folder.path()).exists(), "a clean stop leaves no server");
    drop(dir);

    let (_dir, postgres) = start(folder.path()).await;
    run(&postgres, "insert into kept values (1)").await;
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_outlived_its_application_is_used_and_stopped_by_the_next() {
    let folder = folder();
    let (dir, postgres) = start(folder.path()).await;
    let first = server(folder.path());
    drop((dir, postgres)); // what kill -9 leaves: the lock is free, the server is up

    let (_dir, postgres) = start(folder.path()).await;
    assert_eq!(server(folder.path()), first);
    postgres.stop().await.unwrap();
    assert!(!pid_file(folder.path()).exists(), "the next one stops it");
}

#[tokio::test]
async fn a_killed_server_is_started_again_and_keeps_what_was_committed() {
    let folder = folder();
    let (dir, postgres) = start(folder.path()).await;
    run(&postgres, "create table kept (id int)").await;
    kill_process(server(folder.path()), Signal::KILL).unwrap();
    drop((dir, postgres));

    let (_dir, postgres) = start(folder.path()).await;
    run(&postgres, "insert into kept values (1)").await;
    postgres.stop().await.unwrap();
}

/// As after a restart of the machine: the number in the pid files is now somebody else's.
#[tokio::test]
async fn pid_files_that_name_a_stranger_are_cleared_away() {
    let folder = folder();
    let (dir, postgres) = start(folder.path()).await;
    let files = [pid_file(folder.path()), folder.path().join("run/.s.PGSQL.5432.lock")];
    let old = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    postgres.stop().await.unwrap();
    drop(dir);
    let stranger = Stranger::new(folder.path());
    fs::create_dir_all(folder.path().join("run")).unwrap();
    for (file, text) in files.iter().zip(&old) {
        let (_, rest) = text.split_once('\n').unwrap();
        fs::write(file, format!("{}\n{rest}", stranger.0.id())).unwrap();
    }

    let (_dir, postgres) = start(folder.path()).await;
    assert_ne!(server(folder.path()).as_raw_nonzero().get().cast_unsigned(), stranger.0.id());
    postgres.stop().await.unwrap();
}

/// A process of the same user as the server's, or Postgres would not be deceived.
struct Stranger(Child);

impl Stranger {
    fn new(root: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        use std::os::unix::process::CommandExt;
        let owner = fs::metadata(root.join("postgres")).unwrap();
        let mut command = Command::new("sleep");
        command.arg("60").current_dir("/");
        if rustix::process::geteuid().is_root() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        Self(command.spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn what_a_killed_initdb_left_is_removed() {
    let folder = folder();
    fs::create_dir(folder.path().join("postgres.new-dead")).unwrap();
    fs::write(folder.path().join("postgres.new-dead/PG_VERSION"), "15").unwrap();

    let (_dir, postgres) = start(folder.path()).await;
    assert!(!folder.path().join("postgres.new-dead").exists());
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_and_full_of_odd_characters_works() {
    let folder = folder();
    let root = folder.path().join(format!("it's a \"long\" ünïcode, & {}", "x".repeat(90)));
    let (_dir, postgres) = start(&root).await;
    run(&postgres, "select 1").await;
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_beside_the_application_uses_its_server_and_leaves_it_up() {
    let folder = folder();
    let (_dir, postgres) = start(folder.path()).await;
    let beside = Postgres::start(&DataDir::join(folder.path()).unwrap()).await.unwrap();
    beside.stop().await.unwrap();
    run(&postgres, "select 1").await;
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn the_private_redis_outlives_a_crash_and_ends_with_a_clean_stop() {
    let folder = folder();
    let dir = DataDir::claim(folder.path()).unwrap();
    let first = Redis::start(&dir).await.unwrap().expect("redis-server is installed for tests");
    std::mem::forget(first); // what kill -9 leaves

    let found = Redis::start(&dir).await.unwrap().unwrap();
    let url = found.url().to_owned();
    found.stop().await;
    let client = deadpool_redis::redis::Client::open(url).unwrap();
    assert!(client.get_connection().is_err(), "a clean stop leaves no server");
}
