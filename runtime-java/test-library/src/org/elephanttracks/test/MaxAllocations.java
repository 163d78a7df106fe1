package org.elephanttracks.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.junit.jupiter.api.extension.ExtendWith;

/**
 * The test method, or each of the class, fails if it allocates more. It runs several times, see {@link #warmUp}; what
 * {@code @BeforeEach} methods do does not count, and is done once. On a JDK that is not instrumented it is skipped.
 */
@Documented
@Inherited
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(AllocationsExtension.class)
public @interface MaxAllocations {
    /** Most objects, arrays included; negative: any number. */
    long objects() default -1;

    /** Most bytes; negative: any number. Sizes depend on the JVM and its options, numbers of objects do not. */
    long bytes() default -1;

    /** How often the method runs before the run that counts. */
    int warmUp() default 1;

    /** Whether what other threads allocate meanwhile counts, too. */
    boolean allThreads() default false;
}
