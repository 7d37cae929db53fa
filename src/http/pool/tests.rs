//! Work on the pool: done, refused, fenced.

use super::*;

fn pool(limits: PoolLimits) -> Pool {
    Pool::new(limits).unwrap()
}

#[tokio::test]
async fn answers_and_fences_panics() {
    let pool = pool(PoolLimits::default());
    assert_eq!(pool.run(Lane::Point, || 7).await, Ok(7));
    let lost = pool.run(Lane::Scan, || -> u8 { panic!("on purpose") }).await;
    assert_eq!(lost, Err(PoolError::Lost));
    assert_eq!(pool.run(Lane::Scan, || 8).await, Ok(8));
}

#[tokio::test]
async fn scans_leave_a_thread_to_points_and_a_full_queue_is_told() {
    let pool = pool(PoolLimits {
        threads: 2,
        scans_max: 9,
        scans_waiting_max: 1,
        ..PoolLimits::default()
    });
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let (begun, has_begun) = oneshot::channel();
    let held = pool
        .resume(Lane::Scan, move || {
            begun.send(()).ok();
            gate.recv().ok();
        })
        .unwrap();
    has_begun.await.unwrap();
    let waiting = pool.submit(Lane::Scan, false, || 1).unwrap();
    assert_eq!(pool.run(Lane::Scan, || 2).await, Err(PoolError::Full));
    assert_eq!(pool.run(Lane::Point, || 3).await, Ok(3));
    open.send(()).unwrap();
    assert_eq!(held.await.unwrap(), Ok(()));
    assert_eq!(waiting.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn what_waited_too_long_is_not_begun() {
    let pool = pool(PoolLimits {
        wait_max: Duration::ZERO,
        ..PoolLimits::default()
    });
    assert_eq!(pool.run(Lane::Point, || 1).await, Err(PoolError::Expired));
}
