package org.elephanttracks.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.junit.jupiter.api.extension.ExtendWith;

/** The test method, or each of the class, fails if it allocates anything: {@link MaxAllocations} with 0 objects. */
@Documented
@Inherited
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(AllocationsExtension.class)
public @interface NoAllocations {
    /** How often the method runs before the run that counts. */
    int warmUp() default 1;

    /** Whether what other threads allocate meanwhile counts, too. */
    boolean allThreads() default false;
}
